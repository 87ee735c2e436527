#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { parse } from '../lib/parse.mjs'
import { report } from '../lib/report.mjs'
import { readSettings } from '../lib/settings.mjs'

const [, , verb, file] = process.argv

if (!['check', 'report'].includes(verb) || file === undefined) {
  console.error('usage: ledger check|report FILE')
  process.exit(2)
}

try {
  const settings = readSettings(process.env)
  const entries = parse(readFileSync(file, 'utf8'))
  if (settings.isLoud) console.error(`${file}: ${entries.length} entries`)
  console.log(verb === 'check' ? `${entries.length} entries` : report(entries, settings))
} catch (error) {
  console.error(`ledger: ${error.message}`)
  process.exitCode = 1
}
