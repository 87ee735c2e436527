import { readFileSync } from 'node:fs'

export function readSettings(env) {
  const names = env.LEDGER_CATEGORIES === undefined ? {} : JSON.parse(readFileSync(env.LEDGER_CATEGORIES, 'utf8'))
  return { currency: env.LEDGER_CURRENCY, names, isLoud: env.DEBUG === '1' }
}
