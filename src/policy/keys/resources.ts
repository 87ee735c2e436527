/** Keys below `resources`: sizes in bytes, times in milliseconds, null for no limit. */
import {
  formatDuration,
  formatSize,
  orNone,
  parseCount,
  parseCpus,
  parseDuration,
  parseSize,
  type Reader,
  within,
} from '../../text/units.ts'
import type { Need } from '../values.ts'
import { SANDBOX_HOME } from './inside.ts'
import { type FlagValues, type Key, type KeyFlag, type Measured, scalar, section } from './key.ts'
import { atMost } from './narrowing.ts'
import { zoneOfMode } from './zone-text.ts'

const MEASURED = ['string', 'number'] as const

const sizeFrom = (least: number, expected: string): Reader<number | null> =>
  within(orNone(parseSize), { least, most: Number.MAX_SAFE_INTEGER, expected })

/** One page: a tmpfs of size 0 would have no bound at all (tmpfs(5), "size"). */
const PAGE = 4096
export const scratchSize = within(parseSize, {
  least: PAGE,
  most: Number.MAX_SAFE_INTEGER,
  expected: 'a size of at least 4k, such as 50m',
})
/** Below this the runner itself could not start. */
const LEAST_MEMORY = 4 * 1024 ** 2
const memory = sizeFrom(LEAST_MEMORY, 'a size of at least 4m, such as 512m, or none')
/** The engine, our init and the command. The largest is PID_MAX_LIMIT of linux/threads.h. */
const pids = within(orNone(parseCount), {
  least: 3,
  most: 4_194_304,
  expected: 'a number of processes from 3 to 4194304, or none',
})
/** 24 days: the largest delay of a 32-bit millisecond timer. */
const time = within(orNone(parseDuration), {
  least: 1,
  most: 2 ** 31 - 1,
  expected: 'a time from 1ms to 24d, such as 30s, or none',
})
/** One page a second: below that a single operation would block for longer than any deadline. */
const bytesPerSecond = sizeFrom(PAGE, 'a size of at least 4k, such as 20m, or none')
/** The kernel counts operations in 32 bits (UINT_MAX is "no limit", block/blk-throttle.c). */
const operationsPerSecond = within(orNone(parseCount), {
  least: 1,
  most: 2 ** 32 - 2,
  expected: 'a number of operations from 1 to 4294967294, or none',
})

/** Of zones, and of the changes to them. Some directories are made before the command has written anything of use. */
export const growth = sizeFrom(1024 ** 2, 'a size of at least 1m, such as 500m, or none')

const flag = (name: string, argument: string): KeyFlag => ({ name, argument, group: 'Limits' })
const rare = (name: string, argument: string): KeyFlag => ({ ...flag(name, argument), isRare: true })

/** A limit that `none` lifts; without the limit there is nothing to need. */
const needed = (need: Need) => (value: number | null) => (value === null ? undefined : need)

const scratch = (
  description: string,
  size: string,
  option: KeyFlag,
): Key<Measured, number, number> & { readonly default: string } =>
  scalar<Measured, number>(scratchSize, {
    description,
    unit: 'size',
    type: MEASURED,
    default: size,
    narrowing: { ...atMost<number>(formatSize), fix: (size) => `--${option.name} ${formatSize(size)}` },
    flag: option,
  }) as Key<Measured, number, number> & { readonly default: string }

interface Rate {
  readonly flag: string
  readonly description: string
}

const rateOf = (read: Reader<number | null>, unit: string, shows: (value: number) => string) => (declared: Rate) =>
  scalar<Measured, number | null>(read, {
    description: declared.description,
    unit: `${unit} or none`,
    type: MEASURED,
    default: 'none',
    flag: rare(declared.flag, unit === 'size' ? 'SIZE' : 'N'),
    narrowing: atMost(shows),
    need: needed('io-limit'),
  })

const bytesRate = rateOf(bytesPerSecond, 'size', formatSize)
const operationsRate = rateOf(operationsPerSecond, 'number', String)

const HOME = 'NAME|SIZE|DIR[:MODE]'

/** Without a slash it is a size where it begins with a digit, and a name where it begins with a letter; a directory is written with one. */
function homeValues(text: string): FlagValues {
  if (/^\d[^/]*$/.test(text)) return { values: { home: 'none', resources: { home: text } } }
  if (/^[A-Za-z][^/]*$/.test(text)) return { values: { home: text } }
  return zoneOfMode(text, HOME, { mode: 'rw', target: SANDBOX_HOME })
}

export const resources = section(
  {
    memory: scalar<Measured, number | null>(memory, {
      description: 'Most memory of the whole run, files in its scratch directories included.',
      unit: 'size or none',
      type: MEASURED,
      default: '512m',
      flag: flag('memory', 'SIZE'),
      narrowing: atMost(formatSize),
      need: needed('memory-limit'),
    }),
    swap: scalar<Measured, number>(parseSize, {
      description: 'Most swap space on top of the memory.',
      unit: 'size',
      type: MEASURED,
      default: '0',
      flag: rare('swap', 'SIZE'),
      narrowing: atMost(formatSize),
    }),
    cpus: scalar<Measured, number | null>(orNone(parseCpus, ['all', 'none', 'unlimited']), {
      description: 'How many cores the run may keep busy.',
      unit: 'cores or all',
      type: MEASURED,
      default: '2',
      flag: flag('cpus', 'N'),
      narrowing: atMost(String),
      need: needed('cpus-limit'),
    }),
    pids: scalar<Measured, number | null>(pids, {
      description: 'Most processes and threads at once.',
      unit: 'number or none',
      type: MEASURED,
      default: '256',
      flag: flag('pids', 'N'),
      narrowing: atMost(String),
      need: needed('pids-limit'),
    }),
    timeout: scalar<string, number | null>(time, {
      description: 'Wall time before the command is stopped.',
      unit: 'time or none',
      type: 'string',
      default: '30s',
      flag: flag('timeout', 'TIME'),
      narrowing: atMost(formatDuration),
      need: needed('deadline'),
    }),
    cpuTime: scalar<string, number | null>(time, {
      description: 'Processor time before the command is stopped.',
      unit: 'time or none',
      type: 'string',
      default: 'none',
      flag: rare('cpu-time', 'TIME'),
      narrowing: atMost(formatDuration),
      need: needed('deadline'),
    }),
    readBps: bytesRate({ flag: 'read-bps', description: 'Most bytes a second that the run reads from each disk.' }),
    writeBps: bytesRate({ flag: 'write-bps', description: 'Most bytes a second that the run writes to each disk.' }),
    readIops: operationsRate({ flag: 'read-iops', description: 'Most reads a second from each disk.' }),
    writeIops: operationsRate({ flag: 'write-iops', description: 'Most writes a second to each disk.' }),
    rwSize: scalar<Measured, number | null>(growth, {
      description: 'Most bytes by which writable zones grow together.',
      unit: 'size or none',
      type: MEASURED,
      default: 'none',
      flag: { name: 'rw-size', argument: 'SIZE', group: 'Files', isRare: true },
      narrowing: atMost(formatSize),
    }),
    output: scalar<Measured, number | null>(orNone(parseSize), {
      description: 'Bytes kept of stdout and of stderr, when they are captured; the middle is dropped.',
      unit: 'size or none',
      type: MEASURED,
      default: '1m',
      flag: { ...rare('output', 'SIZE'), help: 'Bytes kept of each stream that is captured.' },
      narrowing: atMost(formatSize),
      need: needed('output-limit'),
    }),
    tmp: scratch('Size of /tmp, where /var/tmp leads, too.', '50m', flag('tmp', 'SIZE')),
    run: scratch('Size of /run.', '10m', rare('run', 'SIZE')),
    shm: scratch('Size of /dev/shm.', '64m', rare('shm', 'SIZE')),
    home: scratch('Size of the home directory.', '50m', {
      name: 'home',
      argument: HOME,
      completes: 'homes',
      group: 'Files',
      help: 'The home directory: kept by a name for the next runs here, of a size, or one of the host; that ends like --rw.',
      standard: '50m',
      sets: homeValues,
    }),
  },
  { cpu: 'cpus' },
)
