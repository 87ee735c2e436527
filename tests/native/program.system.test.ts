/** The client's lookup of a program compared with that of planning: what C takes for a program of the shared plan, TypeScript does, too. */
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, expect, test } from 'vitest'
import { writeLaunchFile } from '../../src/backends/namespace/launch-file.ts'
import { KEY_ANY_PROGRAM } from '../../src/contract.ts'
import { observePaths } from '../../src/host/paths.ts'
import { hasBash } from '../../src/host/program.ts'
import { divisionOf } from '../../src/launch-cache/cache-key.ts'
import { sharesPlan } from '../../src/launch-cache/program.ts'
import { commandCandidates } from '../../src/plan/toolchain.ts'
import { searchPath } from '../../src/plan/well-known-paths.ts'
import { linesOfWords } from '../launch-cache/lines-of-words.ts'
import { PLAIN_REQUEST } from '../plan/world.ts'
import { newDirectory } from '../support/directory.ts'
import { driver } from '../support/driver.ts'
import { describeWith } from '../support/needs.ts'

const place = { top: '', zone: '', file: '' }

const file = (path: string): void => writeFileSync(join(place.top, path), '', { mode: 0o755 })
const link = (to: string, path: string): void => symlinkSync(to, join(place.top, path))

function plantTree(): void {
  for (const path of ['zone/bin', 'zone/opt', 'closed', '.nvm/bin', 'links', 'plain']) {
    mkdirSync(join(place.top, path), { recursive: true })
  }
  for (const path of ['zone/run', 'zone/bin/tool', 'zone/opt/tool', '.nvm/bin/node', 'plain/tool']) file(path)
  link(join(place.top, '.nvm/bin/node'), 'zone/node')
  link('/usr/bin/env', 'zone/env')
  link('/usr/bin/env', '.nvm/bin/env')
  link('loop', 'zone/loop')
  link('/no/such/file', 'zone/nowhere')
  link('../.nvm', 'links/entry')
  link(join(place.top, 'plain/tool'), 'zone/outside')
  chmodSync(join(place.top, 'closed'), 0o000)
}

describeWith('gcc', 'the client', () => {
  beforeAll(async () => {
    const { path, remove } = await newDirectory()
    Object.assign(place, { top: path, zone: join(path, 'zone'), file: join(path, 'f') })
    plantTree()
    writeFileSync(place.file, writeLaunchFile([['zone', place.zone, '/workspace', 'ro', 1, 1, 'closed']]))
    return () => {
      rmSync(join(path, 'closed'), { recursive: true, force: true })
      return remove()
    }
  })

  interface Seen {
    readonly key: string
    readonly shown: string
  }

  async function seenBy(name: string, entries: readonly string[]): Promise<Seen> {
    const { stdout } = await execa(driver('native/program'), [place.file, name], {
      cwd: place.zone,
      env: { PATH: entries.join(':') },
      extendEnv: false,
    })
    const [key = '', shown = ''] = stdout.split('\0')
    return { key, shown }
  }

  function planned(name: string, entries: readonly string[]): string {
    const request = { ...PLAIN_REQUEST, command: [name], cwd: place.zone, path: entries }
    const paths = observePaths([...searchPath(entries), ...commandCandidates(request)])
    return sharesPlan(request, paths) ? KEY_ANY_PROGRAM : name
  }

  const SYSTEM = ['/usr/local/bin', '/usr/bin', '/bin']
  const within = (path: string): string => join(place.top, path)

  const NAMES = `sh env no-such-program /bin/sh /usr/bin/env ./run run ./node ./env ./loop ./nowhere bin/tool .//bin/./tool
    opt/tool bin/../run run/ bin .. x.wasm`
  test.each<[name: string, entries?: () => string[]]>([
    ...NAMES.split(/\s+/).map((name): [string] => [name]),
    ['tool', () => [within('zone/bin'), ...SYSTEM]],
    ['tool', () => [within('zone/opt'), ...SYSTEM]],
    ['tool', () => [within('closed'), within('plain')]],
    ['tool', () => [`${within('plain')}/`, '/usr/bin']],
    ['tool', () => [`${within('zone/../plain')}`, '/usr/bin']],
    ['node', () => [within('zone'), ...SYSTEM]],
    ['node', () => [within('links/entry/bin'), ...SYSTEM]],
    ['env', () => [within('links/entry/bin'), ...SYSTEM]],
    ['env', () => [within('.nvm/bin'), ...SYSTEM]],
    ['run', () => ['', '.', 'bin', ...SYSTEM]],
    ['tool', () => ['bin', ...SYSTEM]],
    ['sh', () => []],
    ['sh', () => ['/nowhere', '/usr/bin/env', '/usr/bin']],
  ])('takes %j for a program of the same plan as planning does', async (...[name, entries = () => SYSTEM]) => {
    expect((await seenBy(name, entries())).key).toBe(planned(name, entries()))
  })

  test.each([
    ['sh', 'shown'],
    ['no-such-program', 'shown'],
    ['./run', 'shown'],
    ['./env', 'shown'],
    ['./outside', 'hidden'],
    ['../plain/tool', 'shown'],
  ])('%j is %s by the plan', async (name, shown) => {
    expect((await seenBy(name, SYSTEM)).shown).toBe(shown)
  })
})

/* Command lines as the client divides them, compared with src/launch-cache/cache-key.ts: what is divided otherwise has another key, or runs another command. */
const ended = (words: readonly (string | number)[]): string => words.map((word) => `${word}\0`).join('')

function printed(words: readonly string[]): string {
  const division = divisionOf(words, hasBash())
  if (division === undefined) return ended(['none'])
  const { options, command, script = '' } = division
  return ended([options.length, script, command.length, ...command])
}

describeWith('gcc', 'the client', () => {
  test('divides every command line as node does', async () => {
    const lines = linesOfWords()
    const { stdout } = await execa(driver('native/words'), {
      input: ended(lines.flatMap((line) => [line.length, ...line])),
    })
    expect(stdout).toBe(lines.map(printed).join(''))
  })
})
