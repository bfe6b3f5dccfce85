const adapter = require('@modelmount/nest')
const testing = require('@modelmount/core/testing')
const common = require('@nestjs/common')
const core = require('@nestjs/core')
const run = require('./nest-app.cjs')

run({ adapter, testing, common, core })
