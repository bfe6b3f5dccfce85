import { describe, expect, test } from 'vitest'
import type { ApiKey } from '../../api/types.ts'
import { checkForm, emptyForm, toChanges, toForm, toSettings } from './key-form.ts'

const key: ApiKey = {
  id: 'key_1',
  name: 'Build server',
  tenant: 'key_1',
  hint: 'sk-mm-1…9',
  status: 'active',
  scopes: ['inference'],
  models: ['qwen3:4b'],
  limits: { requestsPerMinute: 60, perEndUser: { concurrent: 1 } },
  tier: 'free',
  spendingLimit: { usd: 25.5, period: 'month' },
  createdAt: '2026-01-01T00:00:00.000Z',
  expiresAt: '2027-01-01T00:00:00.000Z',
}

describe('a new key', () => {
  test('with a name only has the defaults of the server', () => {
    expect(toSettings({ ...emptyForm, name: ' Ann ' })).toEqual({ name: 'Ann', scopes: ['inference'] })
  })

  test('has all settings of the form', () => {
    const form = {
      ...emptyForm,
      name: 'Ann',
      tenant: 'team',
      models: 'a\nb\n',
      tier: 'pro',
      limits: { concurrent: '2' },
      spendingUsd: '$0.000000001',
      expiry: '30d',
    } as const

    expect(checkForm(form)).toEqual({})
    expect(toSettings(form)).toEqual({
      name: 'Ann',
      scopes: ['inference'],
      tenant: 'team',
      models: ['a', 'b'],
      tier: 'pro',
      limits: { concurrent: 2 },
      spendingLimit: { usd: '0.000000001', period: 'month' },
      expiresIn: '30d',
    })
  })

  test('names the fields that the server would reject', () => {
    const form = {
      ...emptyForm,
      scopes: [],
      limits: { concurrent: 'x' },
      spendingUsd: '1,5',
      expiry: 'date',
    } as const

    expect(Object.keys(checkForm(form))).toEqual([
      'name',
      'scopes',
      'limits.concurrent',
      'spendingLimit',
      'expiresAt',
    ])
  })
})

describe('a change', () => {
  test('of nothing sends nothing', () => {
    expect(toChanges(toForm(key), key)).toEqual({})
  })

  test('sends what differs, and null for what was removed', () => {
    const form = {
      ...toForm(key),
      name: 'CI',
      tier: '',
      models: '',
      spendingUsd: '',
      expiry: 'never',
    } as const

    expect(toChanges(form, key)).toEqual({
      name: 'CI',
      tier: null,
      models: null,
      spendingLimit: null,
      expiresAt: null,
    })
  })

  test('of one limit keeps the others', () => {
    const form = toForm(key)

    expect(toChanges({ ...form, limits: { ...form.limits, requestsPerMinute: '90' } }, key)).toEqual({
      limits: { requestsPerMinute: 90, perEndUser: { concurrent: 1 } },
    })
  })

  test('of the expiry to a duration starts now', () => {
    expect(toChanges({ ...toForm(key), expiry: '7d' }, key)).toEqual({ expiresIn: '7d' })
  })
})
