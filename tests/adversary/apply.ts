/** Apply and undo bring to the host what a command left in a layer: each row ends with what a person on the host then has. */
import { chmodSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Attack, isNamespace } from './attack.ts'
import { byGit, evilConfig, write } from './git.ts'
import { put, type Stage } from './world.ts'

const shell = (script: string): readonly string[] => ['--', '/bin/sh', '-c', `echo attack begun; ${script}`]
const HEAD = 'ref: refs/heads/x\n'

/** A project without a repository. */
const writing = ({ command, options, world: { cwd } }: Stage, script: string) =>
  command([...options, '--rw', '.', ...shell(script)], { cwd })

const applying = ({ command, options, world: { cwd } }: Stage, script: string) =>
  command([...options, '--cow', '.', '--apply', 'on-success', ...shell(script)], { cwd })

/** Everything of a repository but its HEAD, which a run may make. */
const prepare = (stage: Stage, id: string) =>
  writing(stage, `mkdir -p objects refs; ${write('config', evilConfig(stage.world, id, '\tworktree = .\n'))}`)

const useGit = ({ host, world: { cwd } }: Stage) => host(['git', 'status', '--short'], { cwd })

export const APPLY_ATTACKS: readonly Attack[] = [
  {
    id: 'apply.finished-repository',
    of: 'third review 4',
    sentence: 'Apply adds the last part of a repository that another run prepared.',
    attempt: async (stage) => {
      await prepare(stage, 'apply.finished-repository')
      await applying(stage, `printf '${HEAD}' >HEAD`)
      await useGit(stage)
    },
    on: isNamespace,
    ...byGit('apply.finished-repository'),
  },
  {
    id: 'apply.undone-repository',
    of: 'fourth review 3',
    sentence: 'Undo gives back the last part of a repository that another run prepared since the apply.',
    prepare: async (world) => put(world, join(world.cwd, 'HEAD'), HEAD),
    attempt: async (stage) => {
      const { host, world, program, isControl } = stage
      await applying(stage, 'rm HEAD')
      await prepare(stage, 'apply.undone-repository')
      if (isControl) put(world, join(world.cwd, 'HEAD'), HEAD)
      else await host([join(dirname(program), 'llm-do'), 'undo'], { cwd: world.cwd })
      await useGit(stage)
    },
    on: isNamespace,
    ...byGit('apply.undone-repository'),
  },
  {
    id: 'apply.set-id',
    of: 'third review 2',
    sentence: 'Apply opens a set-id program of the host to every user.',
    on: isNamespace,
    prepare: async (world) => {
      put(world, join(world.cwd, 'program'), '#!/bin/sh\n')
      chmodSync(join(world.cwd, 'program'), 0o4755)
    },
    attempt: async (stage) => {
      await applying(stage, 'chmod 0777 program')
    },
    harmed: ({ world }) =>
      (statSync(join(world.cwd, 'program')).mode & 0o4022) > 0o4000
        ? 'any user can write a program that runs with the rights of its owner'
        : undefined,
    control: async ({ host, world: { cwd } }) => {
      await host(['chmod', 'a+w', 'program'], { cwd })
    },
  },
]
