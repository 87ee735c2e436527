/** Keys about what is visible of the host. zones.ts has how zones add up. */
import { quoteValue } from '../../text/units.ts'
import { readHostPath, readTarget, readZoneName } from '../readers.ts'
import { HOST_MODES, type HostMode, ZONE_MODES, type Zone } from '../values.ts'
import { addZones, type DraftZone, draftZones, zoneKeys, zoneOf } from '../zones.ts'
import { type FlagValues, field, type Key, type Measured, toggle, toggleField, word, wordField } from './key.ts'
import { chosen, ranked } from './narrowing.ts'
import { scratchSize } from './resources.ts'
import { type ParsedZone, ZONE_SIZE_TEXT, type ZoneInput } from './zone.ts'
import { splitTarget, unnamedZone, zoneOfMode, zoneValues } from './zone-text.ts'

const NAMED_ZONE = 'NAME=SRC[:TARGET][:MODE]'

function namedZone(text: string): FlagValues {
  const at = text.indexOf('=')
  if (at < 1) return { problem: `expected ${NAMED_ZONE}, got ${quoteValue(text)}.` }
  return zoneOfMode(text.slice(at + 1), NAMED_ZONE, { name: text.slice(0, at), mode: 'ro' })
}

function socketZone(text: string): FlagValues {
  const { hostPath, target } = splitTarget(text)
  if (hostPath === '') return { problem: `expected PATH[:TARGET], got ${quoteValue(text)}.` }
  return zoneValues({ mode: 'ro', kind: 'socket', hostPath, ...(target === undefined ? {} : { target }) })
}

function tmpfsZone(text: string): FlagValues {
  const match = /^(\/[^:]*)(?::([^/:]+))?$/s.exec(text)
  if (match === null) return { problem: `expected TARGET[:SIZE] with an absolute TARGET, got ${quoteValue(text)}.` }
  const [, target = '', size] = match
  return zoneValues({ mode: 'tmpfs', target, ...(size === undefined ? {} : { size }) })
}

/** Words at the end of a zone, for people. */
const ZONE_WORDS = 'keys of a zone at its end: :create, :optional, :sockets, :secret (or :create,secret)'

export const zones: Key<readonly ZoneInput[], readonly ParsedZone[], readonly Zone[]> & {
  readonly default: readonly ZoneInput[]
} = {
  description: 'What is visible of the host, and fresh tmpfs. Merged by name.',
  unit: 'list of mappings',
  examples: [[{ name: 'data', hostPath: './data', mode: 'ro' }]],
  standard: '[]',
  default: [],
  shape: {
    kind: 'mappings',
    fields: {
      name: field<string, string>(readZoneName, {
        description:
          'Name, by which later layers change the zone; it appears at /NAME. Without one it appears at its own host path.',
        unit: 'name',
        type: 'string',
      }),
      mode: wordField(ZONE_MODES, {
        description:
          'ro: can be read; rw: can be changed; cow: can be changed inside, and the host changes when that is applied; tmpfs: empty, in memory, gone at the end.',
        standard: 'ro',
      }),
      hostPath: field<string, string>(readHostPath, {
        description:
          'What is shown: relative to the file that says so (a flag: to the caller), ~/ is the home directory.',
        unit: 'path',
        type: 'string',
      }),
      target: field<string, string>(readTarget, {
        description: 'Where it appears inside.',
        unit: 'absolute path',
        standard: '/NAME',
        type: 'string',
      }),
      size: field<Measured, number>(scratchSize, {
        description: 'Most bytes of a tmpfs zone.',
        unit: 'size',
        standard: ZONE_SIZE_TEXT,
        type: ['string', 'number'],
      }),
      create: toggleField('Make the host directory when it is missing.'),
      optional: toggleField('Leave the zone out when its source is missing.'),
      sockets: toggleField(
        'Sockets and FIFOs in the zone may be used and made: a way out to any process that listens there.',
      ),
      kind: wordField(['socket'], {
        description:
          'socket: one UNIX socket of the host, and nothing else may be there; sockets: true goes without saying.',
      }),
      secret: toggleField(
        'What is in the zone must not leave: a run that shows it has no network where network.afterSecrets is deny.',
      ),
    },
  },
  merging: {
    resolve: draftZones,
    add: addZones,
    setsKeys: zoneKeys,
    finish: (drafts: readonly DraftZone[]) => drafts.map(zoneOf),
  },
  flags: [
    {
      name: 'ro',
      argument: 'SRC[:TARGET]',
      group: 'Files',
      repeats: true,
      help: `Show a file or directory read-only; ${ZONE_WORDS}.`,
      sets: (text) => unnamedZone(text, 'ro'),
    },
    {
      name: 'rw',
      argument: 'SRC[:TARGET]',
      group: 'Files',
      repeats: true,
      help: `Show a file or directory that may be changed; ${ZONE_WORDS}.`,
      sets: (text) => unnamedZone(text, 'rw'),
    },
    {
      name: 'cow',
      argument: 'SRC[:TARGET]',
      group: 'Files',
      repeats: true,
      help: `Show a directory that may be changed inside; the host keeps what it has until llm-do apply; ${ZONE_WORDS}.`,
      sets: (text) => unnamedZone(text, 'cow'),
    },
    {
      name: 'zone',
      isRare: true,
      argument: NAMED_ZONE,
      group: 'Files',
      repeats: true,
      help: `A zone with a name, at /NAME unless TARGET says otherwise; ro unless it says rw or cow; ${ZONE_WORDS}.`,
      sets: namedZone,
    },
    {
      name: 'socket',
      argument: 'PATH[:TARGET]',
      group: 'Network',
      repeats: true,
      help: 'Show one UNIX socket of the host; nothing else of its directory.',
      sets: socketZone,
    },
    {
      name: 'tmpfs',
      isRare: true,
      argument: 'TARGET[:SIZE]',
      group: 'Files',
      repeats: true,
      help: `An empty directory in memory (${ZONE_SIZE_TEXT} unless SIZE says otherwise).`,
      sets: tmpfsZone,
    },
  ],
}

export const workspace = word<HostMode | 'none'>([...HOST_MODES, 'none'], {
  description: "How the caller's directory appears at /workspace; zones are mounted in addition.",
  default: 'ro',
  flag: {
    name: 'no-workspace',
    group: 'Files',
    help: "Do not show the caller's directory.",
    sets: (text) => ({ values: text === 'true' ? { workspace: 'none' } : {} }),
  },
  narrowing: ranked(['none', ...HOST_MODES], { sets: 'default', fix: (mode) => `--${mode} .` }),
})

export const repository = toggle({
  description:
    "The git repository around the caller's directory is mounted like the workspace; so is the main repository of a linked worktree.",
  flag: { name: 'repository', group: 'Files', isRare: true, help: 'Show the git repository around the directory.' },
})

export const samePath = toggle({
  description: 'The workspace keeps its host path inside.',
  flag: { name: 'same-path', group: 'Files', isRare: true },
  narrowing: chosen(),
})
