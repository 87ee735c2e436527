import { describe, expect, test } from 'vitest'
import { buildCreate, buildSession, buildSessionExec, identityOf } from '../../../src/backends/docker/build.ts'
import { clientEnvironment } from '../../../src/backends/docker/client-environment.ts'
import {
  type DockerInputs,
  type DockerRunInputs,
  divideEnvironment,
} from '../../../src/backends/docker/command-environment.ts'
import { imageFor } from '../../../src/backends/docker/images.ts'
import { csvField, tmpfsWords } from '../../../src/backends/docker/mounts.ts'
import type { Launch } from '../../../src/backends/launch.ts'
import { SYSTEM_PATH } from '../../../src/os/run-program.ts'
import type { Plan } from '../../../src/plan/plan.ts'
import { changes, withLists } from '../../support/changes.ts'
import { DOCKER_INPUTS, dockerPlan, plannedZone, runInputs } from '../plans.ts'

/** A launch for review: an option and its value a line, what goes by descriptor by its name and size, no secret. */
function printed({ file, argv, env, descriptors, stop }: Launch): string {
  const fds = descriptors.map((one) => `fd ${one.fd} ${one.carries === 'bytes' ? `${one.what}` : one.carries}`)
  const isValue = (at: number): boolean => at > 0 && !argv[at]!.startsWith('--') && /^--[a-z-]+$/.test(argv[at - 1]!)
  const words = argv.map((word, at) => `${isValue(at) ? ' ' : '\n'}${JSON.stringify(word)}`).join('')
  const lines = withLists(words.split('\n').slice(1), (line) => /^("--env" )?"(?!--)[^ "]*"$/.test(line))
  return `${[file, ...lines, ...fds, `client's environment: ${Object.keys(env).join(' ')}`, `stop: ${stop?.argv.join(' ')}`].join('\n')}\n`
}

const podman: DockerInputs = { ...DOCKER_INPUTS, program: 'podman', path: '/usr/bin/podman' }

function launch(changes: Partial<Plan>, run: Partial<DockerRunInputs> = {}): Launch {
  return buildCreate(dockerPlan(changes), runInputs({ docker: DOCKER_INPUTS, ...run }))
}

const workspace = plannedZone({
  source: '/home/user/project',
  target: '/workspace',
  mode: 'rw',
  protect: ['.git/hooks', '.mcp.json'],
})

const TASK: Partial<Plan> = { zones: [workspace] }
const INIT: DockerInputs = { ...DOCKER_INPUTS, init: '/opt/llm-do/bin/container' }

describe('the argv of a container', () => {
  const task = printed(launch(TASK))

  test('of a task is what was reviewed', () => {
    expect(task).toMatchGolden('task.linux.docker')
  })

  test.each<readonly [string, Partial<Plan>, Partial<DockerRunInputs>]>([
    ['node.linux.docker', TASK, { command: ['node', '-e', 'process.exit(3)'] }],
    ['reporting.linux.docker', TASK, { docker: INIT }],
    [
      'held.linux.docker',
      { zones: [workspace, plannedZone({ source: '/data', target: '/data', dev: 2, ino: '18446744073709551615' })] },
      {
        docker: {
          ...INIT,
          covers: [
            { zone: '/home/user/project', path: '.git', readonly: false, inode: { dev: '1', ino: '2' } },
            { zone: '/home/user/project', path: '.git/hooks', readonly: true, inode: { dev: '1', ino: '3' } },
          ],
        },
      },
    ],
    ['task.linux.podman', TASK, { docker: podman }],
    ['task.rootless.podman', TASK, { docker: { ...podman, rootless: true } }],
    ['task.rootless.docker', TASK, { docker: { ...DOCKER_INPUTS, rootless: true } }],
    ['task.darwin.docker', TASK, { docker: { ...DOCKER_INPUTS, platform: 'darwin', caller: { uid: 501, gid: 20 } } }],
    [
      'task.windows.docker',
      { zones: [{ ...workspace, source: 'C:\\Users\\user\\project', protect: [] }] },
      { docker: { ...DOCKER_INPUTS, platform: 'win32', path: 'C:\\docker.exe' }, commandEnv: { CI: '1' } },
    ],
    ['tty-host-network.linux.docker', { ...TASK, tty: true, network: { mode: 'host', allow: [], deny: [] } }, {}],
    ['no-limits.linux.docker', { ...TASK, limits: {}, seccomp: { profile: 'off', arch: 'x64', filter: '' } }, {}],
    [
      'odd-paths.linux.docker',
      { zones: [plannedZone({ source: '/data/a, "b":\nc', target: '/in' })] },
      { command: ['--privileged', '', 'a\nb'] },
    ],
  ])('%s differs from it as was reviewed', (name, plan, run) => {
    expect(changes(task, printed(launch(plan, run)))).toMatchGolden(`${name}.changes`)
  })

  test('of a session is a container that sleeps, and an exec of the command', () => {
    const both = (docker: DockerInputs) => {
      const run = runInputs({ docker, command: ['node', 'x.js'] })
      return [buildSession(dockerPlan(), run), buildSessionExec(dockerPlan(), run)].map(printed).join('\n')
    }
    expect(both(DOCKER_INPUTS)).toMatchGolden('session.linux.docker')
    expect(changes(both(DOCKER_INPUTS), both(INIT))).toMatchGolden('reporting-session.linux.docker.changes')
  })

  test.each([
    ['where the daemon cannot show it', {}, {}],
    ['without a directory for its socket', { init: '/opt/container' }, { runsDirectory: '' }],
    [
      'where the path of its socket is longer than one can be',
      { init: '/i' },
      { runsDirectory: `/${'x'.repeat(100)}/runs` },
    ],
  ])('does without our init %s', (_where, docker, run) => {
    const { argv } = launch({}, { docker: { ...DOCKER_INPUTS, ...docker }, ...run })
    expect(argv).toContain('--init')
    expect(argv.join()).not.toContain('.llm-do-')
  })

  test('never holds the value of a variable', () => {
    const { argv, stop } = launch({}, { commandEnv: { TOKEN: 's3cret', TEXT: 's3cret\nline', HTTP_PROXY: 's3cret' } })
    expect(JSON.stringify([argv, stop])).not.toContain('s3cret')
  })

  test('has a restricted network made by its init, which becomes the user', () => {
    const network = { mode: 'restricted', allow: ['example.com'], deny: [] } as const
    const { argv } = launch({ network }, { docker: INIT })
    const ids = argv.slice(argv.indexOf('/.llm-do-net') + 1).slice(0, 2)
    const none = launch({}, { docker: INIT })
    expect(ids.join(':')).toBe(none.argv[none.argv.indexOf('--user') + 1])
    expect(argv.filter((_, at) => argv[at - 1] === '--cap-add')).toEqual([
      'NET_ADMIN',
      'NET_BIND_SERVICE',
      'CHOWN',
      'SETUID',
      'SETGID',
      'SETPCAP',
    ])
    for (const [name, value] of [
      ['--network', 'none'],
      ['--user', '0:0'],
      ['--dns', '198.18.0.1'],
    ])
      expect(argv[argv.indexOf(name ?? '') + 1]).toBe(value)
    expect(none.argv).not.toContain('--cap-add')
  })

  test('does not take names of hosts that it would not hold', () => {
    const network = { mode: 'none', allow: [], deny: [], hosts: { 'a.example': '192.0.2.7' } } as const
    expect(() => launch({ network })).toThrow(/network.hosts only of a restricted network/)
  })

  test('cannot restrict the network without its init', () => {
    const network = { mode: 'restricted', allow: ['example.com'], deny: [] } as const
    expect(() => launch({ network })).toThrow(/docker lacks net-restricted/)
  })

  test('names a filter file as what docker cannot translate', () => {
    expect(() => launch({ seccomp: { profile: '/etc/own.yaml', arch: 'x64', filter: '20' } })).toThrow(/own\.yaml/)
  })

  test('names the runtimes when it does not know one', () => {
    expect(() => launch({ runtime: 'cobol' })).toThrow(/expected bash, node, python, cpp, java, dotnet, got "cobol"/)
  })
})

describe('the words of a mount', () => {
  test('keep a blank at the end of a path', () => expect(csvField('/trailing ')).toBe('"/trailing "'))

  test('cannot put a tmpfs on a path with a colon', () => {
    expect(() =>
      tmpfsWords({ target: '/a:b', size: 1, inodes: 1, mode: 0 }, { program: 'docker', owner: { uid: 1, gid: 1 } }),
    ).toThrow(/colon/)
  })
})

describe('the environment of the command', () => {
  const divide = (commandEnv: Record<string, string>, program: 'docker' | 'podman' = 'docker') =>
    divideEnvironment(commandEnv, { program, hasFile: true })

  test('goes by file, so that HOME, PATH and DOCKER_HOST of the command do not reach the client', () => {
    const { lines, byName } = divide({ HOME: '/home/sandbox', PATH: '/x', DOCKER_HOST: 'tcp://x', LD_PRELOAD: '/x.so' })
    expect(lines).toEqual(['DOCKER_HOST=tcp://x', 'HOME=/home/sandbox', 'LD_PRELOAD=/x.so', 'PATH=/x'])
    expect(byName).toEqual({})
  })

  test.each([
    ['a line break', 'a\nb'],
    ['a carriage return at the end', 'a\r'],
    ['64 KiB', 'x'.repeat(65_536)],
  ])('goes by name when its value has %s', (_what, value) => {
    expect(divide({ TEXT: value })).toEqual({ lines: [], byName: { TEXT: value }, impossible: [] })
  })

  test.each(['HOME', 'LD_PRELOAD', 'DOCKER_HOST', 'GODEBUG', 'docker_config'])(
    'is refused when %s would have to go by name: the client would read it',
    (name) => {
      expect(divide({ [name]: 'a\nb' }).impossible).toEqual([name])
    },
  )

  test('goes by name on podman when its value has quotes, which podman would take off', () => {
    expect(divide({ JSON: '{"a":1}' }, 'podman').byName).toEqual({ JSON: '{"a":1}' })
    expect(divide({ JSON: '{"a":1}' }).lines).toEqual(['JSON={"a":1}'])
  })

  test('is not what the client sees: of the caller it sees where its daemon is, no secret and no PATH', () => {
    const steering = { NODE_OPTIONS: '--require ./x.cjs', LD_PRELOAD: './x.so', GODEBUG: 'x', DOCKER_BUILDKIT: '1' }
    const caller = { PATH: '/project/node_modules/.bin:/bin', DOCKER_HOST: 'unix:///s', HTTP_PROXY: 'x', ...steering }
    expect(clientEnvironment({ ...caller, GITHUB_TOKEN: 'x', HOME: '/h' }, '/opt/docker/bin/docker')).toEqual({
      DOCKER_HOST: 'unix:///s',
      HOME: '/h',
      PATH: `${SYSTEM_PATH}:/opt/docker/bin`,
    })
  })
})

describe('who the command is', () => {
  const rw = (uid: number, gid = uid) => plannedZone({ source: '/a', target: '/a', mode: 'rw', uid, gid })
  const as = (uid: number) => ({ ...DOCKER_INPUTS, caller: { uid, gid: uid } })

  test.each<readonly [string, zones: readonly ReturnType<typeof rw>[], caller: number, uid: number, gid: number]>([
    ['the caller', [rw(7)], 5000, 5000, 5000],
    ['the owner of the rw zones when the caller is root', [rw(7, 8), rw(7, 8)], 0, 7, 8],
    ['never in root’s group, though the owner’s directory is', [rw(7, 0)], 0, 7, 65_534],
    ['nobody when root has no rw zone', [], 0, 65_534, 65_534],
  ])('is %s', (_who, zones, caller, uid, gid) => {
    expect(identityOf(dockerPlan({ zones }), as(caller))).toEqual({ uid, gid })
  })
  test.each<readonly [string, readonly ReturnType<typeof rw>[]]>([
    ['belongs to root', [rw(0)]],
    ['belongs to root, with another of a user', [rw(7), rw(0)]],
    ['belongs to another user than another', [rw(7), rw(8)]],
  ])('is nobody at all when root has a rw zone that %s', (_why, zones) => {
    expect(() => identityOf(dockerPlan({ zones }), as(0))).toThrow(/cannot be rw in a container/)
  })
  test('is root inside when the daemon is rootless, which is the caller outside', () => {
    expect(identityOf(dockerPlan({ zones: [rw(7)] }), { ...as(7), rootless: true })).toEqual({ uid: 0, gid: 0 })
  })
})

describe('the image', () => {
  test.each([
    [{ program: 'node' }, 'node:22-bookworm-slim'],
    [{ program: '/usr/bin/python3' }, 'python:3.12-slim-bookworm'],
    [{ program: 'anything' }, 'debian:bookworm-slim'],
    [{ program: 'node', runtime: 'java' }, 'eclipse-temurin:21-jdk'],
    [{ program: 'node', runtime: 'java', image: 'own:1' }, 'own:1'],
    [{ program: 'node', runtime: 'nothing' }, undefined],
  ])('of %o is %s', (wanted, image) => {
    expect(imageFor(wanted)).toBe(image)
  })
})
