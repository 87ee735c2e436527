/** A run must not change the files that decide the next run, by any name. The second run is the victim. */
import { chownSync, existsSync, lchownSync, linkSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Attack, type Cell, isNamespace } from './attack.ts'
import { put, type Stage, textOf, type World } from './world.ts'

/** Says that it has begun, and copies the worker to where the search looks first. */
const COPY =
  'BEGIN { print "attack begun"; fflush(); while ((getline line < "workers/w.worker") > 0) print line > "w.worker" }'

const WORKER = '---\nname: w\ntoolsets:\n  shell:\n    default: preApproved\n    rules: []\n---\nDo it.\n'

const ESCAPE = 'touch /victim/escape'
/** A profile that shows the command a directory of the host. */
const evilProfile = ({ base }: World): string =>
  `sandbox: { workspace: rw, zones: [{ name: victim, hostPath: ${base}/victim, target: /victim, mode: rw }] }`

const PROFILE = 'sandbox: { workspace: rw, samePath: true }\n'
/** Scripts that put the other profile into the place of one in the zone, and of the user's own. */
const exchanging = (name: string) => (world: World) =>
  `cd ${world.zone}; rm -f ${name}; echo '${evilProfile(world)}' >${name}`
const makeDefault = (world: World): string =>
  `cd ${world.home}; mkdir -p .config/llm-do/profiles; echo '${evilProfile(world)}' >.config/llm-do/profiles/default.yaml`

const escaped = ({ world }: { readonly world: World }): string | undefined =>
  existsSync(join(world.base, 'victim/escape')) ? 'the next run wrote to a directory that it was not given' : undefined

/** A link of the world's owner. */
function link(world: World, target: string, path: string): void {
  mkdirSync(join(path, '..'), { recursive: true })
  symlinkSync(target, path)
  if (world.uid !== process.getuid?.()) lchownSync(path, world.uid, world.uid)
}

function directory(world: World, path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o755 })
  if (world.uid !== process.getuid?.()) chownSync(path, world.uid, world.uid)
}

const shell = (script: string): readonly string[] => ['--', '/bin/sh', '-c', `echo attack begun; ${script}`]

/** Refused when planned or held by mounts: a filter only matters where it lets mounts be made. */
const isDecisive = (cell: Cell): boolean => isNamespace(cell) && (cell.filter === 'default' || cell.filter === 'nested')

interface Decided {
  readonly id: string
  readonly of?: string
  readonly sentence: string
  readonly prepare: (world: World) => void
  /** Words of both runs. */
  readonly words: (world: World) => readonly string[]
  /** Of the first run alone. */
  readonly variables?: (world: World) => Readonly<Record<string, string>>
  readonly plant: (world: World) => string
  /** The first run is this program instead of a script. */
  readonly program?: readonly string[]
  readonly harmed?: Attack['harmed']
  readonly second?: string
}

const decided = ({
  id,
  of = 'finding 6',
  sentence,
  prepare,
  words,
  variables = () => ({}),
  plant,
  program,
  harmed,
  second = ESCAPE,
}: Decided): Attack => ({
  id,
  of,
  sentence,
  on: isDecisive,
  prepare: async (world) => {
    directory(world, join(world.base, 'victim'))
    prepare(world)
  },
  attempt: async (stage: Stage) => {
    const { world, options } = stage
    const cwd = world.zone
    const env = variables(world)
    await stage.command([...options, ...words(world), ...(program ?? shell(plant(world)))], { cwd, env })
    if (second !== '') await stage.cli([...options, ...words(world), ...shell(second)], { cwd })
  },
  harmed: harmed ?? escaped,
  control: 'bare',
})

const home = ({ home: path }: World): readonly string[] => ['--zone', `home=${path}:${path}:rw`]

export const STATE_ATTACKS: readonly Attack[] = [
  decided({
    id: 'state.profile',
    sentence: 'The profile that the run was started with is written to.',
    prepare: (world) => put(world, join(world.zone, 'p.yaml'), PROFILE),
    words: () => ['--profile', './p.yaml'],
    plant: exchanging('p.yaml'),
  }),
  decided({
    id: 'state.profile-link',
    sentence: 'The profile was reached by a link in the zone; the link is replaced.',
    prepare: (world) => {
      put(world, join(world.base, 'ext/p.yaml'), PROFILE)
      link(world, '../ext/p.yaml', join(world.zone, 'p.yaml'))
    },
    words: () => ['--profile', './p.yaml'],
    plant: exchanging('p.yaml'),
  }),
  decided({
    id: 'state.profile-directory-link',
    sentence: 'The profile lies below a linked directory of the zone; the link is replaced.',
    prepare: (world) => {
      put(world, join(world.base, 'ext/p.yaml'), PROFILE)
      link(world, '../ext', join(world.zone, 'conf'))
    },
    words: () => ['--profile', './conf/p.yaml'],
    plant: (world) => `cd ${world.zone}; rm -f conf; mkdir conf; echo '${evilProfile(world)}' >conf/p.yaml`,
  }),
  decided({
    id: 'state.profile-extended-link',
    sentence: 'The profile extends another one by a link in the zone; the link is replaced.',
    prepare: (world) => {
      put(world, join(world.base, 'ext/base.yaml'), PROFILE)
      put(world, join(world.base, 'ext/p.yaml'), 'sandbox: { extends: ../zone/base.yaml }\n')
      link(world, '../ext/base.yaml', join(world.zone, 'base.yaml'))
    },
    words: () => ['--profile', '../ext/p.yaml'],
    plant: exchanging('base.yaml'),
  }),
  decided({
    id: 'state.profile-hard-link',
    of: 'finding 16',
    sentence: 'A second name of the profile in the zone is written to.',
    prepare: (world) => {
      put(world, join(world.base, 'ext/p.yaml'), PROFILE)
      linkSync(join(world.base, 'ext/p.yaml'), join(world.zone, 'again.yaml'))
    },
    words: (world) => ['--profile', `${world.base}/ext/p.yaml`],
    plant: (world) => `cd ${world.zone}; echo '${evilProfile(world)}' >again.yaml`,
  }),
  decided({
    id: 'state.config-link',
    sentence: 'The directory of the profiles is a link in a zone of the home; the link is replaced.',
    prepare: (world) => {
      directory(world, join(world.base, 'dotfiles'))
      directory(world, join(world.home, '.config'))
      link(world, join(world.base, 'dotfiles'), join(world.home, '.config/llm-do'))
    },
    words: home,
    plant: (world) => `rm ${world.home}/.config/llm-do; ${makeDefault(world)}`,
  }),
  decided({
    id: 'state.config-made',
    sentence: 'The directory of the profiles, which is not there yet, is made in a zone of the home.',
    prepare: (world) => directory(world, join(world.home, '.config')),
    words: home,
    plant: makeDefault,
  }),
  decided({
    id: 'state.config-other-variables',
    of: 'state of another environment',
    sentence: 'A run whose variables name another directory of profiles makes the standard one in a zone of the home.',
    prepare: (world) => {
      directory(world, join(world.home, '.config'))
      directory(world, join(world.base, 'elsewhere'))
    },
    words: home,
    variables: ({ base }) => ({ XDG_CONFIG_HOME: join(base, 'elsewhere') }),
    plant: makeDefault,
  }),
  decided({
    id: 'state.cache',
    sentence: 'The launch cache is replaced in a zone of the home.',
    prepare: (world) => directory(world, join(world.home, '.cache/llm-do/launch')),
    words: home,
    plant: (world) =>
      `cd ${world.home}; mv .cache .c; mkdir -p -m 700 .cache/llm-do/launch; echo evil >.cache/llm-do/launch/planted`,
    second: 'true',
    harmed: ({ world }) =>
      existsSync(join(world.home, '.cache/llm-do/launch/planted'))
        ? 'a file was planted in the launch cache'
        : undefined,
  }),
  decided({
    id: 'state.cache-link',
    sentence: 'The directory of the caches is a link in a zone of the home; the link is replaced.',
    prepare: (world) => {
      directory(world, join(world.runtime, 'disk'))
      link(world, join(world.runtime, 'disk'), join(world.home, '.cache'))
    },
    words: home,
    plant: (world) =>
      `cd ${world.home}; rm .cache && mkdir -p -m 700 .cache/llm-do/launch; echo evil >.cache/llm-do/launch/planted`,
    second: 'true',
    harmed: ({ world }) => {
      const real = textOf(join(world.runtime, 'disk/llm-do/launch/planted'))
      return existsSync(join(world.home, '.cache/llm-do/launch/planted')) || real !== undefined
        ? 'a file was planted in the launch cache'
        : undefined
    },
  }),
  decided({
    id: 'state.filter-file',
    sentence: 'The filter of the run is a file in the zone; another filter is written over it.',
    prepare: (world) => put(world, join(world.zone, 'own.yaml'), 'extends: default\n'),
    words: (world) => ['--zone', `zone=${world.zone}:${world.zone}:rw`, '--seccomp', './own.yaml'],
    plant: (world) => `cd ${world.zone}; rm -f own.yaml; echo 'extends: nested' >own.yaml`,
    second: 'true',
    harmed: ({ world }) =>
      textOf(join(world.zone, 'own.yaml')) === 'extends: default\n'
        ? undefined
        : 'the filter of the next run is another one',
  }),
  decided({
    id: 'state.worker-shadowed',
    of: 'finding 16',
    sentence: 'A worker that was found by its name gets one that the search finds before it.',
    prepare: (world) => put(world, join(world.zone, 'workers/w.worker'), WORKER),
    words: (world) => ['--worker', 'w', '--zone', `zone=${world.zone}:${world.zone}:rw`, '--workdir', world.zone],
    plant: () => '',
    // A worker's rules know no shell.
    program: ['--', 'awk', COPY],
    second: '',
    harmed: ({ world }) => (existsSync(join(world.zone, 'w.worker')) ? 'another worker is found first' : undefined),
  }),
  {
    id: 'links.zone-source',
    of: 'finding 7, CVE-2026-39861, CVE-2026-41397',
    sentence: 'A directory of the project that is a zone of the next run becomes a link out of the project.',
    on: isDecisive,
    prepare: async (world) => {
      directory(world, join(world.zone, 'output'))
      put(world, join(world.base, 'victim/notes'), 'host\n')
    },
    attempt: async (stage) => {
      const { world, options } = stage
      await stage.inside(`cd ${world.zone}; rmdir output; ln -s ${world.base}/victim output`)
      const zone = ['--zone', 'output=./output:/output:rw']
      await stage.cli([...options, ...zone, ...shell('echo evil >/output/notes')], { cwd: world.zone })
    },
    harmed: ({ world }) =>
      textOf(join(world.base, 'victim/notes')) === 'host\n' ? undefined : 'the next run wrote where the link leads',
    control: async (stage) => {
      // The same directory named by its own path: this is what the caller did not ask for.
      const { world, options } = stage
      await stage.cli([
        ...options,
        '--zone',
        `output=${world.base}/victim:/output:rw`,
        ...shell('echo evil >/output/notes'),
      ])
    },
  },
]
