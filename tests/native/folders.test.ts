/** The folders of the native part: each uses only what stands below it, so a program can be read folder by folder. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const NATIVE = join(import.meta.dirname, '../../native')

/** Bottom to top. `net` is a program that nothing includes. `tools` are programs of their own, and use nothing of `client`. */
const FOLDERS = ['lib', 'net', 'sandbox', 'runner', 'client', 'tools']
const USES: Readonly<Record<string, readonly string[]>> = {
  lib: ['lib'],
  net: ['lib', 'net'],
  sandbox: ['lib', 'sandbox'],
  runner: ['lib', 'sandbox', 'runner'],
  client: ['lib', 'runner', 'client'],
  tools: ['lib', 'sandbox', 'runner', 'tools'],
}

const files = readdirSync(NATIVE, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.[ch]$/.test(file))
  .map((file) => ({ file, text: readFileSync(join(NATIVE, file), 'utf8') }))

const includesOf = (text: string): readonly string[] =>
  [...text.matchAll(/^#include "([^"]+)"/gm)].map(([, name]) => name ?? '')

test('every source lies in a folder, and all folders are known', () => {
  expect([...new Set(files.map(({ file }) => file.split('/')[0]))].toSorted()).toEqual(FOLDERS.toSorted())
})

test('a header is named with its folder, and exists', () => {
  const names = new Set(files.map(({ file }) => file))
  const unknown = files.flatMap(({ file, text }) =>
    includesOf(text)
      .filter((name) => !names.has(name))
      .map((name) => `${file}: ${name}`),
  )
  expect(unknown).toEqual([])
})

test('no folder uses what is above it', () => {
  const climbs = files.flatMap(({ file, text }) => {
    const [folder = ''] = file.split('/')
    return includesOf(text)
      .filter((name) => !USES[folder]?.includes(name.split('/')[0] ?? ''))
      .map((name) => `${file} -> ${name}`)
  })
  expect(climbs).toEqual([])
})
