/** Names of pages about NestJS. */
import type { NestExpressApplication } from '@nestjs/platform-express'

// Exports:
export { type Llm, LlmError } from '@modelmount/core'
export {
  InjectLlm,
  type LimitedRequest,
  LlmModule,
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
} from '@modelmount/nest'
export {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  Logger,
  Module,
  Post,
  Req,
  UseGuards,
} from '@nestjs/common'
export { ConfigService } from '@nestjs/config'
export { APP_FILTER } from '@nestjs/core'
export type { Response } from 'express'
export declare const app: NestExpressApplication
