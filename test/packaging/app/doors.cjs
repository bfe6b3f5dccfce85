const core = require('@modelmount/core')
const http = require('@modelmount/core/http')
const testing = require('@modelmount/core/testing')
const adapter = require('@modelmount/express')
const tinyModel = require('@modelmount/tiny-model')
const express = require('express')
const chat = require('./chat.cjs')

chat({ core, http, testing, adapter, tinyModel, express })
