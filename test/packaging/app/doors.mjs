import * as core from '@modelmount/core'
import * as http from '@modelmount/core/http'
import * as limits from '@modelmount/core/limits'
import * as testing from '@modelmount/core/testing'
import * as adapter from '@modelmount/express'
import * as tinyModel from '@modelmount/tiny-model'
import express from 'express'
import chat from './chat.cjs'

await chat({ core, http, limits, testing, adapter, tinyModel, express })
