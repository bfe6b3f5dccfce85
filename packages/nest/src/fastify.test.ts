/** The plugin of @modelmount/fastify in an app of Nest on Fastify. */
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmPlugin } from '@modelmount/fastify'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../test/support/empty-folder.ts'

test('the plugin serves its prefix, and the controllers and the 404 of the app stay', async () => {
  @Controller('users')
  class Users {
    @Get()
    list() {
      return ['ada']
    }
  }
  @Module({ controllers: [Users] })
  class AppModule {}
  const llm = await createLlm({ engine: scriptedEngine('Hello there.'), models: emptyFolder() })
  const app = await NestFactory.create<NestFastifyApplication>(AppModule, new FastifyAdapter(), {
    logger: false,
  })
  onTestFinished(() => app.close())
  await app.register(llmPlugin, { llm, prefix: '/llm' })
  await app.init()
  const body = { model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] }
  const ask = (payload: object) => app.inject({ method: 'POST', url: '/llm/v1/chat/completions', payload })

  const [answer, stream] = [await ask(body), await ask({ ...body, stream: true })]
  const [users, unknown] = [await app.inject('/users'), await app.inject('/nope')]

  expect(answer.json().choices[0].message.content).toBe('Hello there.')
  expect(stream.body).toContain('data: [DONE]')
  expect(users.json()).toEqual(['ada'])
  expect(unknown.json().message).toBe('Cannot GET /nope')
})
