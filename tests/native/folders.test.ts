/** The structure of the native part: each folder and each file uses only what is below it, so a program can be read part by part. */
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

/** `foo.c` and `foo.h` are one part; comments, strings and prototypes call nothing. */
const parts = files.map(({ file, text }) => ({
  part: file.slice(0, -2),
  code: text.replace(/\/\*[\s\S]*?\*\/|\/\/.*|"(?:[^"\\\n]|\\.)*"/g, ' ').replace(/^[a-z_][^;{}=]*\);/gm, ''),
}))

/** The functions that other files can call: not static, or inline in a header. */
const definitions = new Map(
  parts.flatMap(({ part, code }) =>
    [...code.matchAll(/^(?!static (?!inline))[a-z_][\w *]*[ *](\w+)\([^;{}]*\) \{/gm)].map(
      ([, name = '']) => [name, part] as const,
    ),
  ),
)

/** By part the parts whose functions it names, to call them or to have them called. */
function callGraph(): Map<string, Set<string>> {
  const graph = new Map(parts.map(({ part }) => [part, new Set<string>()]))
  for (const { part, code } of parts) {
    const own = new Set([...code.matchAll(/^static [\w *]*[ *](\w+)\(/gm)].map(([, name]) => name))
    for (const [name] of code.matchAll(/(?<!\b(?:struct|enum) |[.>])\b[a-z_]\w+/g)) {
      const callee = own.has(name) ? undefined : definitions.get(name)
      if (callee !== undefined && callee !== part) graph.get(part)?.add(callee)
    }
  }
  return graph
}

/** Removes parts that call none of the others, or that none of the others calls, until the rest consists of circles. */
function cyclesIn(graph: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] {
  const left = new Map(graph)
  const isEnd = (part: string, callees: ReadonlySet<string>): boolean =>
    ![...callees].some((callee) => left.has(callee)) || ![...left.values()].some((others) => others.has(part))
  for (let size = -1; size !== left.size; ) {
    size = left.size
    for (const [part, callees] of [...left]) if (isEnd(part, callees)) left.delete(part)
  }
  return [...left.keys()].toSorted()
}

test('no file calls one that calls it, directly or through others', () => {
  const graph = callGraph()
  expect(cyclesIn(graph)).toEqual([])
  graph.get('lib/clock')?.add('runner/watch')
  expect(cyclesIn(graph), 'a circle is seen').toContain('lib/clock')
})

test('a run has a field for each part, and no more than 20', () => {
  const run = files.find(({ file }) => file === 'runner/run.h')?.text ?? ''
  const [, body = ''] = /^struct run \{\n([\s\S]*?)^\};/m.exec(run) ?? []
  const fields = body.replace(/\/\*[\s\S]*?\*\//g, '').match(/[,;]/g) ?? []
  expect(fields.length).toBeGreaterThan(10)
  expect(fields.length).toBeLessThanOrEqual(20)
})
