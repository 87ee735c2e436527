/** The runner's own programs on the host: what they read, where they act, what stops them. */
import { execFileSync } from 'node:child_process'
import { chownSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { nativeDirectory } from '../../src/os/native-programs.ts'
import { type Attack, type Cell, isNamespace } from './attack.ts'
import { put, quoted, textOf, type World } from './world.ts'

const isOneCell = ({ backend, filter }: Cell): boolean => backend === 'unshare' && filter === 'default'

export const HOST_ATTACKS: readonly Attack[] = [
  {
    id: 'locks.hang',
    of: 'finding 11',
    sentence: 'A sandbox that may only read a directory locks everything in it while another run wants to write there.',
    on: (cell) => isNamespace(cell) && cell.filter === 'default',
    attempt: async (stage) => {
      const { world, options } = stage
      const lock = `${world.tools}/lock 60 ${world.zone} ${world.zone}/.git ${world.zone}/.git/config ${world.zone}/notes`
      const zones = [
        '--zone',
        `zone=${world.zone}:${world.zone}:ro`,
        '--zone',
        `shown=${world.shown}:${world.shown}:ro`,
      ]
      const holder = await stage.inBackground([stage.program, ...options, ...zones, '--', '/bin/sh', '-c', lock])
      const waits = quoted(['flock', '--shared', join(world.zone, '.git'), 'true'])
      await stage.inside(stage.isControl ? waits : 'true', { limitMs: 15_000 })
      holder.kill('SIGTERM')
    },
    harmed: ({ runs }) => (runs.some(({ hung }) => hung) ? 'the run waits for the lock of a sandbox' : undefined),
    control: async (stage) => {
      const { world } = stage
      const holder = await stage.inBackground([`${world.tools}/lock`, '60', join(world.zone, '.git')])
      await stage.command(['--', 'flock', '--shared', join(world.zone, '.git'), 'echo', 'attack begun'], {
        limitMs: 2_000,
      })
      holder.kill('SIGTERM')
    },
  },
  {
    id: 'package.set-id',
    of: 'CVE-2016-8659, CVE-2020-5291 (bubblewrap), CVE-2022-31214 (firejail)',
    sentence: 'A program of the package has rights that its caller has not.',
    on: isOneCell,
    attempt: (stage) => stage.inside('true').then(() => undefined),
    harmed: ({ world }) => {
      const paths = [nativeDirectory(), world.cwd]
      const found = execFileSync(join(world.tools, 'scan'), paths, { encoding: 'utf8' })
      return found === '' ? undefined : found
    },
    control: async (stage) => {
      const program = join(stage.world.cwd, 'helper')
      await stage.host(['sh', '-c', `cp /bin/true ${program} && chmod u+s ${program}`])
    },
  },
  {
    id: 'races.protected-path',
    of: 'finding 1, CVE-2024-45310 (runc), CVE-2024-28185 (judge0)',
    sentence: 'The owner of a zone exchanges a protected name for a link while root prepares a run there.',
    on: ({ user, filter }) => user === 'root' && filter === 'default',
    prepare: async (world) => {
      put(world, join(world.base, 'victim/root-file'), 'host\n', 0o600)
      // The zone is another user's than what is to be taken, with a container too.
      for (const name of ['victim', 'victim/root-file']) chownSync(join(world.base, name), 0, 0)
      chownSync(world.zone, OTHER, OTHER)
    },
    attempt: async (stage) => {
      const { world } = stage
      const words = [`${world.tools}/exchange`, world.zone, '.vscode', join(world.base, 'victim/root-file')]
      for (let n = 0; n < RACES && !isTaken(world); n++) {
        const racer = await stage.inBackground([...words, '2'], { uid: OTHER })
        await stage.inside('true')
        racer.kill('SIGKILL')
      }
    },
    harmed: ({ world }) => (isTaken(world) ? 'a file of root changed its owner or its mode' : undefined),
    // A careless program of root works like this: make, own, mode, each by the path.
    control: async (stage) => {
      const { world } = stage
      const racer = await stage.inBackground(
        [`${world.tools}/exchange`, world.zone, '.vscode', join(world.base, 'victim/root-file'), '20'],
        { uid: OTHER },
      )
      const careless = `cd ${world.zone}; echo attack begun; while [ -O ../victim/root-file ]; do mkdir .vscode; chown ${OTHER} .vscode; chmod 1555 .vscode; rm -rf .vscode .exchange-link; ln -s ../victim/root-file .exchange-link; done 2>/dev/null`
      await stage.command(['--', 'sh', '-c', careless])
      racer.kill('SIGKILL')
    },
    controlAs: 'root',
  },
]

const RACES = 5
/** An ordinary user who owns the zone in which root works. */
export const OTHER = 1000

function isTaken(world: World): boolean {
  const { uid, mode } = statSync(join(world.base, 'victim/root-file'))
  return uid !== 0 || (mode & 0o7777) !== 0o600 || textOf(join(world.base, 'victim/root-file')) !== 'host\n'
}
