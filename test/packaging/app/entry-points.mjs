import * as core from '@modelmount/core'
import * as adapter from '@modelmount/core/adapter'
import * as database from '@modelmount/core/database'
import * as engine from '@modelmount/core/engine'
import * as http from '@modelmount/core/http'
import * as limits from '@modelmount/core/limits'
import * as models from '@modelmount/core/models'
import * as testing from '@modelmount/core/testing'
import * as express from '@modelmount/express'
import * as tinyModel from '@modelmount/tiny-model'
import framework from 'express'
import chat from './chat.cjs'

await chat({ core, adapter, database, engine, http, limits, models, testing, express, tinyModel, framework })
