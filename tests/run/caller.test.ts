import { mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { decidingPaths, describeCaller, type Environment, makeOwnDirectory } from '../../src/run/caller.ts'

const site = { root: '' }
beforeEach(() => {
  site.root = realpathSync(mkdtempSync(join(tmpdir(), 'llm-do-caller-')))
})
afterEach(() => rmSync(site.root, { recursive: true, force: true }))

const described = (env: Environment, cwd = site.root) => describeCaller({ command: ['true'], cwd, env, captured: true })

describe('Of the caller a plan may depend on', () => {
  test('names of variables, but values only of language, terminal and time zone', () => {
    const request = described({ HOME: site.root, TOKEN: 's3cret', LANG: 'de_DE.UTF-8', TZ: '', GONE: undefined })
    expect(request.environmentNames).toEqual(['HOME', 'TOKEN', 'LANG', 'TZ'])
    expect(request.locale).toEqual({ LANG: 'de_DE.UTF-8' })
    expect(JSON.stringify(request)).not.toContain('s3cret')
  })

  test('the directory that a link leads to', () => {
    symlinkSync(site.root, join(site.root, 'link'))
    expect(described({ HOME: site.root }, join(site.root, 'link')).cwd).toBe(site.root)
  })

  test('its home, and the homes of all other accounts', () => {
    const { home, homes } = described({ HOME: site.root })
    expect(home).toBe(site.root)
    expect(homes[0]).toBe(site.root)
  })
})

test('A directory that is not there is refused', () => {
  expect(() => described({ HOME: site.root }, join(site.root, 'gone'))).toThrow(/cannot be used: ENOENT/)
})

test('A relative HOME is refused, since it names another directory everywhere', () => {
  expect(() => described({ HOME: 'home' })).toThrow('HOME: expected an absolute path, got "home"')
})

test('The places that decide the next run hold no relative path, and no node of the caller’s directory', () => {
  const env = { HOME: site.root, PATH: `bin:${site.root}/bin:/usr/bin` }
  const paths = decidingPaths(env, { cwd: site.root })
  expect(paths.filter((path) => !path.startsWith('/'))).toEqual([])
  expect(paths).not.toContain(`${site.root}/bin/node`)
  expect(paths).toContain(process.execPath)
})

test('The places that decide the next run are also those of a run without the variables of this one', () => {
  const uid = process.getuid?.() ?? -1
  const variables = ['XDG_CONFIG_HOME', 'XDG_CACHE_HOME', 'XDG_STATE_HOME'].map((name) => [name, '/elsewhere'])
  const paths = decidingPaths({ HOME: site.root, ...Object.fromEntries(variables) }, { cwd: site.root })
  const own = uid === 0 ? ['/run/llm-do'] : [`/tmp/llm-do-${uid}`, `/tmp/llm-do-${uid}-9`]
  const state = uid === 0 ? [] : [`${site.root}/.local/state/llm-do/cow`, `${site.root}/.local/state/llm-do/homes`]
  const standard = ['.config/llm-do/profiles', '.cache/llm-do'].map((name) => join(site.root, name))
  expect(paths).toEqual(expect.arrayContaining([...standard, ...own, ...state, '/elsewhere/llm-do/profiles']))
})

test('The directory of records that cannot be made is left to launch, which says why', () => {
  expect(() => makeOwnDirectory({ XDG_RUNTIME_DIR: '/dev/null/runtime' })).not.toThrow()
})
