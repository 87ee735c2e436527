/** Git on the host must not run what a sandbox wrote: each row plants a program, then a user runs git as always. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { linkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { type Attack, isNamespace } from './attack.ts'
import { copyRepository, mark, put, type Stage, type World, wasRun } from './world.ts'

/** A configuration of git whose program leaves a mark when git asks for the state of the tree. */
export const evilConfig = (world: World, id: string, more = ''): string =>
  `[core]\n\trepositoryformatversion = 0\n${more}\tfsmonitor = "touch ${mark(world, id)}; false"\n`

export const write = (path: string, text: string): string => `printf '%s' '${text}' >'${path}'`

/** Harm by git on the host; a repository is what it is without a sandbox, too. */
export const byGit = (id: string): Pick<Attack, 'harmed' | 'control'> => ({
  harmed: ({ world }) => (wasRun(world, id) ? 'git ran the program of the sandbox' : undefined),
  control: 'bare',
})

interface GitWay {
  readonly id: string
  readonly sentence: string
  readonly prepare?: (world: World) => Promise<void>
  readonly script: (world: World, config: (more?: string) => string) => string
  /** Below the zone; where git is used afterwards. */
  readonly in?: string
  readonly git?: readonly string[]
}

function gitAttack({ id, sentence, prepare, script, in: below = '', git = ['status', '--short'] }: GitWay): Attack {
  const scriptOf = (world: World): string => `cd ${world.zone}\n${script(world, (more) => evilConfig(world, id, more))}`
  return {
    id,
    of: 'finding 5',
    sentence,
    ...(prepare === undefined ? {} : { prepare }),
    script: scriptOf,
    attempt: async (stage: Stage) => {
      await stage.inside(scriptOf(stage.world))
      const identity = ['-c', 'user.name=a', '-c', 'user.email=a@b']
      await stage.host(['git', ...identity, ...git], { cwd: join(stage.world.zone, below) })
    },
    ...byGit(id),
  }
}

/** One more repository in the zone, as the first is. */
const repositoryAt = (world: World, to: string): void => {
  copyRepository(join(world.zone, to))
  if (world.uid !== process.getuid?.()) execFileSync('chown', ['-R', `${world.uid}:${world.uid}`, world.zone])
}

const WAYS: readonly GitWay[] = [
  {
    id: 'git.config',
    sentence: 'The configuration of the repository is written to.',
    script: (world, config) => write(`${world.zone}/.git/config`, config()),
  },
  {
    id: 'git.hook',
    sentence: 'A hook is put into the repository.',
    script: (world) =>
      `${write('.git/hooks/pre-commit', `#!/bin/sh\ntouch ${mark(world, 'git.hook')}\n`)}; chmod 755 .git/hooks/pre-commit`,
    git: ['commit', '--quiet', '--allow-empty', '--message', 'x'],
  },
  {
    id: 'git.commondir',
    sentence: 'A file of the repository says that its configuration lies elsewhere.',
    script: (_world, config) =>
      `mkdir .evil; cp -r .git/objects .git/refs .evil/; ${write('.evil/config', config())}; echo ../.evil >.git/commondir`,
  },
  {
    id: 'git.bare-at-root',
    sentence: 'The repository loses its HEAD, and the zone itself becomes a bare repository.',
    script: (_world, config) =>
      `cp -r .git/objects .git/refs .; cp .git/HEAD HEAD; rm .git/HEAD; ${write('config', config('\tbare = false\n\tworktree = .\n'))}`,
  },
  {
    id: 'git.submodule',
    sentence: "A submodule's own configuration is written to.",
    prepare: async (world) => {
      repositoryAt(world, '.git/modules/sub')
      put(world, join(world.zone, 'sub/.git'), 'gitdir: ../.git/modules/sub\n')
    },
    script: (_world, config) => write('.git/modules/sub/config', config('\tworktree = ../../../sub\n')),
    in: 'sub',
  },
  {
    id: 'git.repository-below',
    sentence: 'The configuration of another repository in the zone is written to.',
    prepare: async (world) => repositoryAt(world, 'app/.git'),
    script: (_world, config) => write('app/.git/config', config()),
    in: 'app',
  },
  {
    id: 'git.new-repository-below',
    sentence: 'A repository is made in a directory of the zone.',
    script: (_world, config) => `mkdir -p src/new; cp -r .git src/new/.git; ${write('src/new/.git/config', config())}`,
    in: 'src/new',
  },
  {
    id: 'git.repository-moved-in',
    sentence: 'A repository that was made under another name is renamed to .git.',
    script: (_world, config) =>
      `mkdir -p src/new; cp -r .git src/new/x; ${write('src/new/x/config', config())}; mv src/new/x src/new/.git`,
    in: 'src/new',
  },
  {
    id: 'git.hard-link',
    sentence: 'A second name of the configuration in the zone is written to.',
    prepare: async (world) => linkSync(join(world.zone, '.git/config'), join(world.zone, 'config-again')),
    script: (_world, config) => `${write('config-again', config())}`,
  },
]

/** A directory without a repository, as a zone. */
const inFreshZone = (id: string, sentence: string, script: (config: (more?: string) => string) => string): Attack => ({
  id,
  of: 'finding 5',
  sentence,
  attempt: async (stage) => {
    const { cwd } = stage.world
    const options = ['--zone', `fresh=${cwd}:${cwd}:rw`, '--workdir', '/tmp']
    await stage.inside(`cd ${cwd}\n${script((more) => evilConfig(stage.world, id, more))}`, { options })
    await stage.host(['git', 'status', '--short'], { cwd })
  },
  ...byGit(id),
})

const FRESH: readonly Attack[] = [
  inFreshZone(
    'git.fresh-bare',
    'A directory that is no repository becomes a bare one.',
    (config) =>
      `mkdir -p objects refs; echo 'ref: refs/heads/x' >HEAD; ${write('config', config('\tbare = false\n\tworktree = .\n'))}`,
  ),
  inFreshZone(
    'git.fresh',
    'A directory that is no repository becomes one.',
    (config) =>
      `mkdir -p .git/objects .git/refs; echo 'ref: refs/heads/x' >.git/HEAD; ${write('.git/config', config())}`,
  ),
]

const REPLACED = 'git.replaced-config'

/** A mount covers a file, not a name: when the host puts another file there, nothing covers that one. */
const DURING: Attack = {
  id: REPLACED,
  of: 'fourth review 4',
  sentence: 'A program of the host replaces the configuration while a command runs, which then writes to the new file.',
  on: isNamespace,
  attempt: async (stage) => {
    const { world } = stage
    const changes = watch(world.zone)
    const begun = once(changes, 'change')
    const running = stage.inside(`cd ${world.zone}; touch begun; until grep -q host .git/config; do :; done
      ${write('evil', evilConfig(world, REPLACED))}; cat evil >>.git/config`)
    await Promise.race([running, begun])
    changes.close()
    await stage.host(['git', 'config', 'user.name', 'host'], { cwd: world.zone })
    await running
    await stage.host(['git', 'status', '--short'], { cwd: world.zone })
  },
  ...byGit(REPLACED),
}

export const GIT_ATTACKS: readonly Attack[] = [...WAYS.map(gitAttack), ...FRESH, DURING]

/* ---- for the soak ---- */

/** One zone with every repository that a row looks at. */
export function prepareRepositories(world: World): void {
  repositoryAt(world, '.git/modules/sub')
  repositoryAt(world, 'app/.git')
  put(
    world,
    join(world.zone, '.git/modules/sub/config'),
    '[core]\n\trepositoryformatversion = 0\n\tworktree = ../../../sub\n',
  )
  put(world, join(world.zone, 'sub/.git'), 'gitdir: ../.git/modules/sub\n')
}

/** Where git is used after a round. */
export const repositoriesOf = ({ zone }: World): readonly string[] =>
  ['', 'sub', 'app', 'src/new'].map((name) => join(zone, name))
