// All of the library in one file.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'

mkdirSync('dist', { recursive: true })
const texts = readdirSync('lib').map((name) => readFileSync(`lib/${name}`, 'utf8'))
const all = texts.join('\n').replaceAll(/^import .* from '\.\/.*'$/gm, '')
writeFileSync('dist/ledger.mjs', process.env.NODE_ENV === 'production' ? all.replaceAll(/^\s+/gm, '') : all)
console.log(`dist/ledger.mjs: ${all.length} characters`)
