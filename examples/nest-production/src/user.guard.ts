import { createHash, timingSafeEqual } from 'node:crypto'
import {
  type CanActivate,
  type ExecutionContext,
  Inject,
  Injectable,
  UnauthorizedException,
} from '@nestjs/common'
import { ConfigService } from '@nestjs/config'
import type { Request } from 'express'

export interface User {
  readonly id: string
  readonly tier: string
}

export interface RequestWithUser extends Request {
  user?: User
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Finds the user of each request, on the routes of the app and on those of models. Health checks need none. */
@Injectable()
export class UserGuard implements CanActivate {
  readonly #users: readonly { readonly token: Buffer; readonly user: User }[]

  constructor(@Inject(ConfigService) config: ConfigService) {
    this.#users = config
      .getOrThrow<string>('API_TOKENS')
      .split(',')
      .map((entry) => entry.split(':') as [string, string, string])
      .map(([token, id, tier]) => ({ token: digest(token), user: { id, tier } }))
  }

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<RequestWithUser>()
    if (/^\/(livez|readyz|startupz)$/.test(request.path)) return true
    const token = digest(/^Bearer (.+)$/.exec(request.get('authorization') ?? '')?.[1] ?? '')
    request.user = this.#users.find((one) => timingSafeEqual(one.token, token))?.user
    if (!request.user) throw new UnauthorizedException('unknown token')
    return true
  }
}
