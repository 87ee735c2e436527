/** The files that node loads and compiles before it starts its work. Tried on the built program, because people wait for that one. */
import { cp, mkdir, readdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { byHand } from '../support/by-hand.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

const ROOT = checkoutFor(currentUser())

/** Notes every script that the program makes: its name, and whether what was compiled before could be used. */
const TRACER = `
  const vm = require('node:vm')
  const made = []
  vm.Script = class extends vm.Script {
    constructor(text, options) {
      super(text, options)
      const name = require('node:path').basename(options.filename).replace(/-[^-]*$/, '')
      made.push({ name, compiled: this.cachedDataRejected === false })
    }
  }
  process.on('exit', () => require('node:fs').writeFileSync(process.env.TRACE, JSON.stringify(made)))`

interface Started {
  readonly status: number | undefined
  readonly scripts: readonly { readonly name: string; readonly compiled: boolean }[]
}

async function start(words: readonly string[], root = ROOT, script = 'cli.cjs'): Promise<Started> {
  const home = await temporaryDirectory()
  const [tracer, trace] = [join(home, 'tracer.cjs'), join(home, 'trace.json')]
  await writeFile(tracer, TRACER)
  const { words: argv, env } = byHand(words, { PATH: process.env.PATH ?? '', HOME: home }, home)
  const { exitCode } = await execa(process.execPath, ['--require', tracer, join(root, 'dist', script), ...argv], {
    cwd: home,
    env: { ...env, TRACE: trace },
    extendEnv: false,
    reject: false,
  })
  return { status: exitCode, scripts: JSON.parse(await readFile(trace, 'utf8')) }
}

const namesOf = ({ scripts }: Started): readonly string[] => scripts.map(({ name }) => name)

describe('The program', () => {
  test('that says its version loads nothing but itself', async () => {
    expect(await start(['--version'])).toEqual({ status: 0, scripts: [{ name: 'program', compiled: true }] })
  })

  test('of a verb alone is what the client starts for that verb and for no other word', async () => {
    const root = await temporaryDirectory()
    await mkdir(join(root, 'bin'))
    await mkdir(join(root, 'dist'))
    await cp(join(ROOT, 'bin/llm-do'), join(root, 'bin/llm-do'))
    await cp(join(ROOT, 'dist/node-path'), join(root, 'dist/node-path'))
    await cp(join(ROOT, 'package.json'), join(root, 'package.json'))
    await writeFile(join(root, 'dist/cli.cjs'), "console.log('whole')")
    for (const name of ['ps', 'a1', 'a.b']) await writeFile(join(root, `dist/cli-${name}.cjs`), "console.log('alone')")
    const started = async (word: string) => (await execa(join(root, 'bin/llm-do'), [word], { cwd: root })).stdout
    const words = ['ps', 'kill', 'a1', 'a.b', '../dist/cli-ps']
    const outputs = await Promise.all(words.map(started))
    expect(outputs).toEqual(['alone', 'whole', 'whole', 'whole', 'whole'])
  })

  test('that reads options as policy loads the schema, and no parser of files', async () => {
    const started = await start(['exec', '--memory', 'much', '--', 'true'])
    const names = ['program', 'zod']
    expect({ status: started.status, names: namesOf(started) }).toEqual({ status: 125, names })
  })

  test('compiles by itself where what was compiled before is cut, or of another node', async () => {
    const root = await temporaryDirectory()
    await cp(join(ROOT, 'dist'), join(root, 'dist'), { recursive: true })
    await cp(join(ROOT, 'package.json'), join(root, 'package.json'))
    const [name = ''] = (await readdir(join(root, 'dist'))).filter((file) => /^program-.*\.compiled$/.test(file))
    const file = join(root, 'dist', name)
    const refused = { status: 0, scripts: [{ name: 'program', compiled: false }] }
    // The second word is V8's sum over its version.
    const bytes = await readFile(file)
    await writeFile(file, bytes.fill(0xff, 4, 8))
    expect(await start(['--version'], root)).toEqual(refused)
    await truncate(file, 1000)
    expect(await start(['--version'], root)).toEqual(refused)
  })
})

describeWith(['userns'], 'A run that was not planned before', () => {
  test('loads neither schema nor parser nor libraries, when only shipped profiles speak', async () => {
    const started = await start(['exec', '--', 'true'])
    expect({ status: started.status, names: namesOf(started) }).toEqual({ status: 0, names: ['program'] })
  })

  test('is refused by its name where the kernel makes no namespaces', async () => {
    const home = await temporaryDirectory()
    const inside = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    const words = ['--user', '--map-root-user', '--', 'sh', '-c', inside, 'sh', join(ROOT, 'bin/llm-do-exec')]
    const { exitCode, stderr } = await execa('unshare', [...words, '--', 'true'], {
      cwd: home,
      env: { PATH: process.env.PATH, HOME: home },
      extendEnv: false,
      reject: false,
    })
    expect({ exitCode, stderr }).toEqual({ exitCode: 125, stderr: expect.stringContaining('NO_BACKEND') })
    expect(stderr).toContain('namespace cannot be used')
  })
})
