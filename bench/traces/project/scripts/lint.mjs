// No line longer than 120 signs, no tab, no white space at the end.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const files = ['bin', 'lib', 'test', 'scripts'].flatMap((directory) =>
  readdirSync(directory).map((name) => join(directory, name)),
)
const faults = files.flatMap((file) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line, at) => (/\t|\s$|.{121}/.test(line) ? [`${file}:${at + 1}`] : [])),
)
for (const fault of faults) console.error(fault)
process.exitCode = faults.length === 0 ? 0 : 1
