import { LlmModule } from '@modelmount/nest'
import { Module } from '@nestjs/common'
import { ConfigModule, ConfigService } from '@nestjs/config'
import { APP_FILTER, APP_GUARD } from '@nestjs/core'
import { validateEnvironment } from './environment.js'
import { LlmErrorFilter } from './llm-error.filter.js'
import { SummariesController } from './summaries.controller.js'
import { type RequestWithUser, UserGuard } from './user.guard.js'

@Module({
  imports: [
    ConfigModule.forRoot({ isGlobal: true, validate: validateEnvironment }),
    LlmModule.forRootAsync({
      path: 'llm',
      health: true, // GET /livez, /readyz and /startupz
      isGlobal: true,
      // Our guard has run by then, also on the routes of models.
      authenticate: ({ user }: RequestWithUser) => user && { id: user.id, tier: user.tier },
      inject: [ConfigService],
      useFactory: (config: ConfigService) => ({
        auth: 'host',
        models: config.get('MODELS_DIR'),
        tiers: { free: { requestsPerMinute: 5 }, paid: { requestsPerMinute: 300, weight: 4 } },
        shutdown: { admitFor: config.getOrThrow('ADMIT_FOR'), drain: '30s' },
      }),
    }),
  ],
  controllers: [SummariesController],
  providers: [
    { provide: APP_GUARD, useClass: UserGuard },
    { provide: APP_FILTER, useClass: LlmErrorFilter },
  ],
})
export class AppModule {}
