import * as testing from '@modelmount/core/testing'
import * as adapter from '@modelmount/nest'
import * as common from '@nestjs/common'
import * as core from '@nestjs/core'
import run from './nest-app.cjs'

await run({ adapter, testing, common, core })
