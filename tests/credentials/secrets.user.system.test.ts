/**
 * Secrets reach the command and nothing else: each place that can hold one has one, and everything that is written or shown during the
 * run and after it is searched. Each search has a control that finds what must be found.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runsDirectory } from '../../src/host/own-directory.ts'
import { cliWords, runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'

/** Text that every planted value begins with; put together here so that this file does not hold it. */
const PLANTED = ['planted', 'secret'].join('-')
const secret = (name: string) => `${PLANTED}-${name}`

const CREDENTIAL = '.config/gh/hosts.yml'
const PROFILE = `sandbox:
  env: { inherit: [INHERITED], set: { WRITTEN: ${secret('profile')} } }
  credentials: [{ file: ~/${CREDENTIAL} }, { file: ~/token, target: /run/secrets/token }]
`

interface TestSite {
  readonly home: string
  readonly work: string
  readonly audit: string
  /** The caller's environment. */
  readonly env: Readonly<Record<string, string>>
}

async function makeTestSite(): Promise<TestSite> {
  const home = await temporaryDirectory()
  const work = path.join(home, 'work')
  for (const directory of ['work', 'runtime', path.dirname(CREDENTIAL)]) {
    await mkdir(path.join(home, directory), { recursive: true, mode: 0o700 })
  }
  await writeFile(path.join(home, CREDENTIAL), secret('credential'), { mode: 0o600 })
  await writeFile(path.join(home, 'token'), secret('token'), { mode: 0o600 })
  await writeFile(path.join(home, 'p.yaml'), PROFILE)
  await writeFile(path.join(home, 'bare.yaml'), 'sandbox: { toolchains: off }\n')
  return {
    home,
    work,
    audit: path.join(home, 'audit.log'),
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      LANG: 'C.UTF-8',
      XDG_RUNTIME_DIR: path.join(home, 'runtime'),
      INHERITED: secret('inherited'),
      LLM_DO_EXEC_ENV: `TWIN=${secret('twin')}`,
      // No test needs these: they are the ones that a CI runner or a shell has lying about.
      GITHUB_TOKEN: secret('github'),
      AWS_SECRET_ACCESS_KEY: secret('aws'),
      DOCKER_PASSWORD: secret('docker'),
      LLM_DO_API_KEY: secret('llm-do'),
    },
  }
}

function start({ env, work }: TestSite, words: readonly string[]) {
  const [file = '', ...argv] = cliWords(words)
  const child = execa(file, argv, { cwd: work, env, extendEnv: false, reject: false })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  return child
}

/** The whole output of a run whose stdin is closed. */
async function finished(at: TestSite, words: readonly string[]) {
  const child = start(at, words)
  child.stdin.end()
  return child
}

/** Waits for a line of a run that continues. */
function printed(child: ReturnType<typeof start>, line: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const seen: string[] = []
    child.stdout.on('data', (chunk: Buffer) => {
      seen.push(chunk.toString())
      if (seen.join('').includes(line)) resolve()
    })
    child.on('exit', () => reject(new Error(`it ended before it said ${line}: ${seen.join('')}`)))
  })
}

const text = (file: string): string => {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return '' // gone meanwhile, a socket, or another user's
  }
}

/** Files below a directory that hold a planted value. */
function holders(directory: string): readonly string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .filter((file) => text(file).includes(PLANTED))
}

/** Programs on this machine whose argv holds a text. */
function programsWith(wanted: string): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && text(`/proc/${name}/cmdline`).includes(wanted))
    .map((name) => {
      try {
        return path.basename(readlinkSync(`/proc/${name}/exe`))
      } catch {
        return 'unknown'
      }
    })
}

/** Only the lines that the person typed. */
const WRITTEN_BY_THE_USER = ['p.yaml', 'token', CREDENTIAL]
const inHome = ({ home }: TestSite) => WRITTEN_BY_THE_USER.map((file) => path.join(home, file)).toSorted()

const TELL = `cat ~/${CREDENTIAL} /run/secrets/token; echo " $INHERITED $WRITTEN $TWIN"; env`

describeWith(['bwrap', 'userns'], 'secrets', () => {
  test('that were granted reach the command, others do not, and credentials are read-only', async () => {
    const at = await makeTestSite()
    const spoil = `echo x >> ~/${CREDENTIAL}; : > /run/secrets/token; rm -f ~/${CREDENTIAL}; mv ~/${CREDENTIAL} ~/x; ln -f ~/${CREDENTIAL} /tmp/x; chmod 666 /run/secrets/token`
    const { stdout } = await finished(at, ['--profile', '../p.yaml', '-c', `${TELL}; ${spoil}`])
    const reached = [...new Set(stdout.match(new RegExp(`${PLANTED}-[a-z-]+?(?=${PLANTED}|[^a-z-]|$)`, 'g')))]
    expect(reached.toSorted()).toEqual(['credential', 'inherited', 'profile', 'token', 'twin'].map(secret).toSorted())
    const files = [CREDENTIAL, 'token'].map((file) => text(path.join(at.home, file)))
    expect(files).toEqual([secret('credential'), secret('token')])
  })

  test('are in no argument, no record and no file while the command runs, nor in the environment of its PID 1', async () => {
    const at = await makeTestSite()
    const [marker, typed] = ['marker', 'typed'].map((word) => `${word}-${path.basename(at.home)}`)
    const script = `cat /proc/1/environ /proc/1/cmdline 2>/dev/null | grep -c ${PLANTED.slice(0, 7)}; ${TELL}; echo ready; read line # ${marker}`
    // Node gets the words of the command line by a descriptor.
    const child = start(at, ['--env', `TYPED=${typed}`, '--profile', '../p.yaml', '--audit', at.audit, '-c', script])
    await printed(child, 'ready')
    // The control: arguments of the command are seen.
    expect(programsWith(`${marker}`).length).toBeGreaterThanOrEqual(1)
    expect([programsWith(PLANTED), programsWith(`${typed}`)]).toEqual([[], []])
    expect(holders(runsDirectory(at.env, process.getuid?.() ?? 0))).toEqual([])
    const ps = await runCli(['ps', '--json'], {
      program: 'llm-do',
      env: { XDG_RUNTIME_DIR: path.join(at.home, 'runtime') },
    })
    expect([ps.stdout.toString().includes(marker), ps.stdout.toString().includes(PLANTED)]).toEqual([true, false])
    expect(holders(at.home).toSorted()).toEqual(inHome(at))
    child.stdin.end('\n')
    const { stdout, stderr } = await child
    expect(stdout).toMatch(/^0\n/)
    expect(stdout).toContain(secret('credential'))
    expect(stdout).toContain(`TYPED=${typed}`)
    expect(stderr).not.toContain(PLANTED)
  })

  test('are in no file afterwards: cache, records and audit log', async () => {
    const at = await makeTestSite()
    const { LLM_DO_EXEC_ENV: _, ...env } = at.env
    const bare = { ...at, env }
    const cached = () => readdirSync(path.join(at.home, '.cache/llm-do/launch'))
    // A plan is cached once what it was made of has settled.
    do await finished(bare, ['--profile', '../bare.yaml', '-c', 'true'])
    while (cached().length === 0)
    for (const words of [['--profile', '../p.yaml'], ['--profile', '../bare.yaml'], []]) {
      await finished(at, [...words, '-c', 'true'])
      await finished(bare, [...words, '--audit', at.audit, '-c', TELL])
    }
    expect(text(at.audit).trim().split('\n')).toHaveLength(3)
    expect(holders(at.home).toSorted()).toEqual(inHome(at))
  })
})

describeWith(['userns', 'one-user'], 'secrets', () => {
  test.each([
    ['the plan', ['--plan']],
    ['the plan as JSON', ['--plan=json']],
    ['the exact process', ['--plan', '--argv']],
    ['the explanation of a key', ['--plan', '--why', 'env']],
    ['a refusal', ['--ro', './nope']],
    ['a refusal as JSON', ['--json', '--memory', 'much']],
    ['the message of a timeout', ['--timeout', '10ms']],
    ['a message about a variable that cannot be one', ['--profile', '../wrong.yaml']],
  ])('are not in %s', async (_title, words) => {
    const at = await makeTestSite()
    await writeFile(path.join(at.home, 'wrong.yaml'), `sandbox: { env: { set: { "A B": ${secret('wrong')} } } }\n`)
    const { stdout, stderr } = await finished(at, ['--profile', '../p.yaml', ...words, '--', 'sleep', '9'])
    expect(stdout + stderr).not.toBe('')
    expect(stdout + stderr).not.toContain(PLANTED)
  })
})

describe('the SSH agent', () => {
  const AGENT = ['-c', 'printenv SSH_AUTH_SOCK || echo none; ssh-add -l']

  async function withAgent(): Promise<TestSite> {
    const at = await makeTestSite()
    const socket = path.join(at.home, 'agent.sock')
    const agent = execa('ssh-agent', ['-D', '-a', socket], { reject: false, stdin: 'ignore' })
    onTestFinished(async () => {
      agent.kill()
      await agent
    })
    while (!readdirSync(at.home).includes('agent.sock')) await new Promise((resolve) => setTimeout(resolve, 20))
    return { ...at, env: { ...at.env, SSH_AUTH_SOCK: socket } }
  }

  describeWith(['bwrap', 'userns', 'ssh-agent'], 'of the caller', () => {
    test('is reached by --ssh-agent alone, and by its socket alone; an agent of root answers only root', async () => {
      const at = await withAgent()
      const without = await finished(at, AGENT)
      expect([without.stdout, without.stderr]).toEqual(['none', expect.stringContaining('Could not open a connection')])
      const { stdout, stderr } = await finished(at, ['--ssh-agent', '-c', `${AGENT[1]}; ls ${at.home} 2>&1`])
      const expected = process.getuid?.() === 0 ? ['', /run llm-do as the user of the agent/] : [/no identities/, /^/]
      expect(stdout).toMatch(/^\/run\/ssh-agent\.sock\n/)
      expect([stdout, stderr]).toEqual(expected.map((pattern) => expect.stringMatching(pattern)))
      expect(stdout).toContain('No such file')
    })
  })

  describeWith(['bwrap', 'userns', 'git', 'ssh-agent'], 'signs commits', () => {
    const COMMIT = ['--rw', '.', '--git-identity', '-c', 'git commit -q --allow-empty -m made']

    async function withKey() {
      const at = await withAgent()
      const [key, signers] = [path.join(at.work, 'key'), path.join(at.work, 'signers')]
      // It makes none for a user without an account, which the command has.
      await finished(at, ['--rw', '.', '-c', 'ssh-keygen -q -t ed25519 -N "" -f key'])
      await execa('ssh-add', ['-q', key], { env: at.env })
      const user = `[user]\nname = Ann\nemail = ann@example.org\nsigningkey = ${key}\n`
      const signing = '[gpg]\nformat = ssh\n[commit]\ngpgsign = true\n'
      await writeFile(path.join(at.home, '.gitconfig'), user + signing)
      await writeFile(signers, `ann@example.org ${await readFile(`${key}.pub`, 'utf8')}`)
      const git = async (...words: readonly string[]) =>
        await execa('git', words, { cwd: at.work, env: at.env, extendEnv: false, all: true })
      await git('init', '-q', '.')
      return { at, git }
    }

    test('by the key that the caller has set up, with --ssh-agent; an agent of root does not answer', async () => {
      const { at } = await withKey()
      const { exitCode, stderr } = await finished(at, ['--ssh-agent', ...COMMIT])
      const isRoot = process.getuid?.() === 0
      expect([exitCode, stderr]).toEqual([0, isRoot ? expect.stringMatching(/signs no commit inside.*root/) : ''])
      const look = 'git -c gpg.ssh.allowedSignersFile=/workspace/signers log -1 --show-signature 2>&1'
      const { stdout } = await finished(at, ['-c', look])
      expect(stdout.includes('Good "git" signature for ann@example.org')).toBe(!isRoot)
    })

    test('or the run says that it does not', async () => {
      const { at, git } = await withKey()
      const { exitCode, stderr } = await finished(at, COMMIT)
      expect([exitCode, stderr]).toEqual([0, expect.stringMatching(/signs no commit inside.*--ssh-agent/)])
      expect((await git('log', '-1', '--format=%an %G?')).stdout).toBe('Ann N')
    })
  })
})
