import { mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { decidingPlaces, describeCaller, type Environment, makeOwnDirectory } from '../../src/run/caller.ts'

const place = { root: '' }
beforeEach(() => {
  place.root = realpathSync(mkdtempSync(join(tmpdir(), 'llm-do-caller-')))
})
afterEach(() => rmSync(place.root, { recursive: true, force: true }))

const described = (env: Environment, cwd = place.root) =>
  describeCaller({ command: ['true'], cwd, env, captured: true })

describe('Of the caller a plan may depend on', () => {
  test('names of variables, but values only of language, terminal and time zone', () => {
    const request = described({ HOME: place.root, TOKEN: 's3cret', LANG: 'de_DE.UTF-8', TZ: '', GONE: undefined })
    expect(request.environmentNames).toEqual(['HOME', 'TOKEN', 'LANG', 'TZ'])
    expect(request.locale).toEqual({ LANG: 'de_DE.UTF-8' })
    expect(JSON.stringify(request)).not.toContain('s3cret')
  })

  test('the directory that a link leads to', () => {
    symlinkSync(place.root, join(place.root, 'link'))
    expect(described({ HOME: place.root }, join(place.root, 'link')).cwd).toBe(place.root)
  })

  test('its home, and the homes of all other accounts', () => {
    const { home, homes } = described({ HOME: place.root })
    expect(home).toBe(place.root)
    expect(homes[0]).toBe(place.root)
  })
})

test('A directory that is not there is refused', () => {
  expect(() => described({ HOME: place.root }, join(place.root, 'gone'))).toThrow(/cannot be used: ENOENT/)
})

test('A relative HOME is refused, since it names another directory everywhere', () => {
  expect(() => described({ HOME: 'home' })).toThrow('HOME: expected an absolute path, got "home"')
})

test('The places that decide the next run hold no relative path, and no node of the caller’s directory', () => {
  const env = { HOME: place.root, PATH: `bin:${place.root}/bin:/usr/bin` }
  const places = decidingPlaces(env, { cwd: place.root })
  expect(places.filter((path) => !path.startsWith('/'))).toEqual([])
  expect(places).not.toContain(`${place.root}/bin/node`)
  expect(places).toContain(process.execPath)
})

test('The directory of records that cannot be made is left to launch, which says why', () => {
  expect(() => makeOwnDirectory({ XDG_RUNTIME_DIR: '/dev/null/runtime' })).not.toThrow()
})
