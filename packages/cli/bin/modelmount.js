#!/usr/bin/env node
// Plain JavaScript, because npm links a bin before anything is built.
import '../dist/bin.js'
