/** The contract of both languages: what is made from native/contract.yaml is what lies in the tree, and it is used. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import * as contract from '../src/contract.ts'

const ROOT = join(import.meta.dirname, '..')
interface OptionNames {
  readonly beforeValue: readonly string[]
  readonly alone: readonly string[]
}
const { OUTPUTS, optionNames } = (await import(join(ROOT, 'scripts/contract.mjs'))) as {
  readonly OUTPUTS: Readonly<Record<string, (contract: object, options: OptionNames) => string>>
  readonly optionNames: () => Promise<OptionNames>
}
const options = await optionNames()
const source = parse(readFileSync(join(ROOT, 'native/contract.yaml'), 'utf8')) as {
  constants: Record<string, { value: unknown }>
}

/** All code below a directory but the generated files. */
function codeIn(directory: string): string {
  const made = Object.keys(OUTPUTS).map((file) => join(ROOT, file))
  return readdirSync(join(ROOT, directory), { recursive: true, encoding: 'utf8' })
    .map((file) => join(ROOT, directory, file))
    .filter((path) => /\.[cht]s?$/.test(path) && !made.includes(path))
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n')
}

describe('the contract', () => {
  test.each(Object.entries(OUTPUTS))('is what %s was made from (else: make contract)', (file, write) => {
    expect(readFileSync(join(ROOT, file), 'utf8')).toBe(write(source, options))
  })

  test('has another text for another source', () => {
    const changed = { ...source, constants: { ...source.constants, STATUS_FD: { value: 7 } } }
    for (const [file, write] of Object.entries(OUTPUTS))
      expect(write(changed, options)).not.toBe(readFileSync(join(ROOT, file), 'utf8'))
  })

  test('tells the client which options there are', () => {
    const more = { ...options, alone: [...options.alone, '--another'] }
    const file = 'native/lib/contract.h'
    expect(OUTPUTS[file]?.(source, more)).not.toBe(readFileSync(join(ROOT, file), 'utf8'))
  })

  test('holds no constant that no language uses', () => {
    const code = `${codeIn('src')}${codeIn('native')}`
    const names = Object.keys(source.constants)
    expect(names.filter((name) => !new RegExp(`\\b${name}\\b`).test(code))).toEqual([])
  })

  test('numbers frames and verbs without a number twice', () => {
    expect(new Set(Object.values(contract.FRAME)).size).toBe(Object.keys(contract.FRAME).length)
  })
})
