import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { BUILT_IN } from '../../src/policy/built-in.ts'
import { profileJsonSchema } from '../../src/policy/json-schema.ts'
import { KEY_ROWS, meaningOf } from '../../src/policy/key-table.ts'
import { GIT_NAMES, OPENABLE_NAMES, PROTECTED_NAMES, REPOSITORY_SYSTEMS } from '../../src/policy/protected.ts'
import { parseSandbox } from '../../src/policy/schema.ts'
import { withValueAt } from '../../src/policy/value-at.ts'
import { expectFile, withPart } from '../support/generated.ts'
import { keyList, protectedList } from './lists.ts'

const ROOT = new URL('../../', import.meta.url)

test('every key says what it takes and means, in one line', () => {
  const incomplete = KEY_ROWS.filter(({ description, unit }) => !/^\S.*\.$/.test(description) || unit === '')
  expect(incomplete).toEqual([])
  expect(KEY_ROWS.length).toBeGreaterThan(40)
})

test('the JSON schema for editors is the one of the program', () => {
  expectFile('schemas/profile.schema.json', profileJsonSchema)
})

test('the manual lists every key and every protected name', () => {
  expectFile('docs/reference/profiles.md', (text) => withPart(text, 'keys', keyList()))
  expectFile('docs/reference/protected.md', (text) =>
    withPart(withPart(text, 'zone', protectedList('zone')), 'home', protectedList('home')),
  )
})

describe('A protected name', () => {
  test('is listed once, as a path below its place', () => {
    expect(OPENABLE_NAMES.filter((name, index) => OPENABLE_NAMES.indexOf(name) !== index)).toEqual([])
    const odd = PROTECTED_NAMES.filter(({ name }) => /^\/|\/$|\/\/|(^|\/)\.\.?(\/|$)|\s/.test(name))
    expect(odd).toEqual([])
  })

  test.each(REPOSITORY_SYSTEMS)(
    'inside $name is one that the native part closes, and the other way round',
    (system) => {
      const text = readFileSync(new URL('native/lib/repository.c', ROOT), 'utf8')
      const tables = [...text.matchAll(/(?:CLOSED|KEPT)_IN_(\w+)\[\] = \{([^}]*)\}/g)].filter(
        ([, name = '']) => `.${name.toLowerCase()}` === system.name,
      )
      const names = tables.flatMap(([, , table = '']) => [...table.matchAll(/"([^"]+)"/g)].map(([, name]) => name))
      expect([...system.closed].sort()).toEqual(names.sort())
    },
  )

  test('inside a git directory holds no blank, which divides names in a launch file', () => {
    expect(GIT_NAMES.filter((name) => /\s/.test(name))).toEqual([])
  })

  test('says which program it is about, and why', () => {
    expect(PROTECTED_NAMES.filter(({ tool, why }) => tool === '' || why === '')).toEqual([])
  })
})

test('the defaults in the manual are those of the built-in layer', () => {
  const flat = (value: unknown, key: string): [string, unknown][] =>
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0
      ? Object.entries(value).flatMap(([name, inner]) => flat(inner, key === '' ? name : `${key}.${name}`))
      : [[key, typeof value === 'object' ? JSON.stringify(value) : String(value)]]
  const rows = flat(BUILT_IN.values, '')
  expect(rows.map(([key]) => [key, meaningOf(key)?.standard])).toEqual(rows)
})

/** An object in a list is incomplete without these. */
const REQUIRED: Readonly<Record<string, object>> = {
  zones: { name: 'data', hostPath: '/data' },
  'network.credentials': { host: 'a.example', header: 'X-Key', from: 'env:KEY' },
  credentials: { file: '/home/me/.npmrc' },
}

interface Node {
  readonly type?: string
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly examples?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Node>>
  readonly items?: Node
  readonly anyOf?: readonly Node[]
}

/** Every key with its place; `[]` behind the name of a list of mappings. */
function keysOf(node: Node, path = ''): readonly (readonly [path: string, Node])[] {
  const parts = [...(node.anyOf ?? []), ...(node.items === undefined ? [] : [node.items])]
  return [
    ...Object.entries(node.properties ?? {}).flatMap(([name, inner]) => {
      const place = path === '' ? name : `${path}.${name}`
      return [[place, inner] as const, ...keysOf(inner, place)]
    }),
    ...parts.flatMap((part) => keysOf(part, path)),
  ]
}

/** `value` at the place, with what a list's object needs. */
function profileWith(path: string, value: unknown): object {
  const list = Object.keys(REQUIRED).find((name) => path.startsWith(`${name}.`))
  if (list === undefined) return withValueAt({}, path, value)
  const inner = path.slice(list.length + 1)
  const rest = inner === 'size' ? { name: 'data', mode: 'tmpfs' } : REQUIRED[list]
  return withValueAt({}, list, [{ ...rest, [inner]: value }])
}

describe('the JSON schema of profiles', () => {
  const schema = JSON.parse(profileJsonSchema()) as Node
  const keys = keysOf(schema.properties?.['sandbox'] ?? {})

  test('describes every key', () => {
    expect(
      keys.filter(([, { description }]) => !/^[A-Z\w].*\.$/.test(description ?? '')).map(([path]) => path),
    ).toEqual([])
    expect(keys.length).toBeGreaterThan(70)
  })

  test('offers words or examples for every value, and the program takes each of them', () => {
    const values = keys.filter(([, { type, properties }]) => type !== 'boolean' && properties === undefined)
    const without = values.filter(([, one]) => (one.enum ?? one.examples ?? []).length === 0)
    expect(without.map(([path]) => path)).toEqual([])
    const refused = keys.flatMap(([path, { examples = [] }]) =>
      examples.flatMap((example) => {
        const { error } = parseSandbox(profileWith(path, example))
        return error === undefined ? [] : [`${path}: ${JSON.stringify(example)}: ${error.issues[0]?.message}`]
      }),
    )
    expect(refused).toEqual([])
  })
})
