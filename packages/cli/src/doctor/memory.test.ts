import { totalmem } from 'node:os'
import { expect, test } from 'vitest'
import { checkMemory, checkRamDisk } from './memory.ts'

const machineWith = (freeBytes: number, totalBytes = totalmem(), ramDiskBytes = 1e9) => ({
  memory: {
    freeBytes,
    totalBytes,
    ramDisk: { path: '/dev/shm', freeBytes: ramDiskBytes, requiredBytes: 268_435_456 },
  },
})

test('little free memory is a warning, which names the limit of a container', () => {
  expect(checkMemory(machineWith(2e9)).status).toBe('ok')
  expect(checkMemory(machineWith(1e9))).toMatchObject({
    status: 'warning',
    fix: expect.stringContaining('ps '),
  })
  expect(checkMemory(machineWith(1e8, 5e8))).toMatchObject({
    status: 'warning',
    message: '100 MB of 500 MB free, the limit of the container, which is too little for most models.',
    fix: expect.stringContaining('docker update --memory'),
  })
})

test.runIf(process.platform === 'linux')(
  "Docker's default RAM disk is a warning, unless the prompt cache is off",
  () => {
    const small = machineWith(2e9, totalmem(), 64e6)

    expect(checkRamDisk(machineWith(2e9), true)[0]?.status).toBe('ok')
    expect(checkRamDisk(small, true)[0]).toMatchObject({
      status: 'warning',
      fix: expect.stringContaining('docker run --shm-size 4g'),
    })
    expect(checkRamDisk(small, false)[0]?.status).toBe('ok')
  },
)

test('without the process that measures it, memory is not checked', () => {
  expect(checkMemory({ memory: undefined })).toMatchObject({
    status: 'ok',
    message: expect.stringContaining('Not checked'),
  })
  expect(checkRamDisk({ memory: undefined }, true)).toEqual([])
})
