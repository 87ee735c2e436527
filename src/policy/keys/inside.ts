/** Keys about what a command finds inside: variables, credentials, its directory, a terminal. */
import { misunderstood, orNone, quoteValue, type Reader, understood } from '../../text/units.ts'
import { resolveHostPath, type SetKey } from '../layer-source.ts'
import {
  readBoolean,
  readCredentialTarget,
  readHostPath,
  readInherited,
  readTarget,
  readVariables,
} from '../readers.ts'
import type { Credential, EnvironmentPolicy } from '../values.ts'
import { type FlagValues, field, type Key, listField, scalar, toggle, toggleField, unite } from './key.ts'
import { chosen, type Narrowing, operatorsOnly, ranked } from './narrowing.ts'

/* ---- variables ---- */

export interface EnvironmentInput {
  readonly inherit?: readonly string[]
  readonly set?: Readonly<Record<string, string>>
}

type Variables = Readonly<Record<string, string>>

/** The highest layer that names a variable decides whether its value is set or taken over. */
function addEnvironment(below: EnvironmentPolicy | undefined, above: EnvironmentPolicy): EnvironmentPolicy {
  const set = Object.entries(below?.set ?? {}).filter(([name]) => !above.inherit.includes(name))
  const inherit = (below?.inherit ?? []).filter((name) => !Object.hasOwn(above.set, name))
  return { inherit: unite(inherit, above.inherit), set: Object.fromEntries([...set, ...Object.entries(above.set)]) }
}

function environmentKeys({ inherit, set }: EnvironmentPolicy): readonly SetKey[] {
  const names = Object.keys(set)
  return [
    { key: 'env' },
    ...(inherit.length === 0 ? [] : [{ key: 'env.inherit' }]),
    ...(names.length === 0 ? [] : [{ key: 'env.set' }]),
    ...names.map((name) => ({ key: `env.set.${name}` })),
  ]
}

const inherits = ({ inherit }: EnvironmentPolicy, name: string): boolean =>
  inherit.some((granted) => granted === name || (granted.endsWith('*') && name.startsWith(granted.slice(0, -1))))

const narrowInherit: Narrowing<readonly string[], EnvironmentPolicy> = {
  isWider: (wanted, granted) => wanted.some((name) => !inherits(granted, name)),
  takes: (wanted, granted) => ({ ...granted, inherit: unite(granted.inherit, wanted) }),
  shows: (wanted) => wanted.join(', '),
  adds: true,
  grants: ({ inherit }) => (inherit.length === 0 ? 'none' : inherit.join(', ')),
  sets: 'always',
  fix: (wanted) => wanted.map((name) => `--env ${name}`).join(' '),
}

/** A value written here gives a worker nothing it could not set in its own commands; names that a layer above sets are left to that layer. */
const narrowSet: Narrowing<Variables, EnvironmentPolicy> = {
  isWider: () => false,
  takes: (wanted, granted) => ({ ...granted, set: { ...ownNames(wanted, granted), ...granted.set } }),
  shows: (wanted) => Object.keys(wanted).join(', '),
  adds: true,
  grants: ({ set }) => Object.keys(set).join(', '),
}

const ownNames = (wanted: Variables, granted: EnvironmentPolicy): Variables =>
  Object.fromEntries(Object.entries(wanted).filter(([name]) => !inherits(granted, name)))

/** The value is not looked at: it may be a secret, and whatever it holds is the command's. */
function variable(text: string): FlagValues {
  const at = text.indexOf('=')
  if (at < 0) return { values: { env: { inherit: [text] } } }
  if (at === 0) return { problem: 'expected NAME[=VALUE], got no name.' }
  return { values: { env: { set: { [text.slice(0, at)]: text.slice(at + 1) } } } }
}

export const env: Key<EnvironmentInput, EnvironmentInput, EnvironmentPolicy> & { readonly default: EnvironmentInput } =
  {
    description: '',
    unit: '',
    default: { inherit: [], set: {} },
    shape: {
      kind: 'mapping',
      fields: {
        inherit: listField(readInherited, {
          description: 'Variables taken over from the caller; a name that ends in * is a prefix.',
          unit: 'list of names',
          examples: [['LANG', 'CI_*']],
          standard: '[]',
        }),
        set: field<Variables, Variables>(readVariables, {
          description: 'Variables with their values. Values never reach a plan, a log or an argument list.',
          unit: 'mapping',
          examples: [{ NODE_ENV: 'test' }],
          standard: '{}',
          type: 'object',
        }),
      },
    },
    merging: {
      resolve: ({ inherit = [], set = {} }: EnvironmentInput) => ({ inherit, set }),
      add: addEnvironment,
      setsKeys: environmentKeys,
    },
    narrowing: { parts: { inherit: narrowInherit, set: narrowSet } },
    flags: [
      {
        name: 'env',
        argument: 'NAME[=VALUE]',
        group: 'Inside',
        repeats: true,
        help: 'A variable with a value, or one taken over from the caller.',
        sets: variable,
      },
    ],
  }

/* ---- credentials ---- */

/** The home directory inside; the plan makes it. */
export const SANDBOX_HOME = '/home/sandbox'

export interface CredentialInput {
  readonly file: string
  readonly target?: string | undefined
  readonly optional?: boolean | undefined
}

/** The same place below the home inside as outside; empty when the file is not below the caller's home. */
function pathBelowHome(file: string, home: string): string {
  return home !== '' && file.startsWith(`${home}/`) ? `${SANDBOX_HOME}${file.slice(home.length)}` : ''
}

function addCredentials(below: readonly Credential[] | undefined, above: readonly Credential[]): readonly Credential[] {
  const kept = (below ?? []).filter(({ target }) => !above.some((credential) => credential.target === target))
  return [...kept, ...above]
}

const narrowCredentials: Narrowing<readonly Credential[]> = {
  isWider: (wanted, granted) => wanted.some(({ file }) => !granted.some((credential) => credential.file === file)),
  takes: (wanted, granted) => [
    ...granted,
    ...wanted.filter(({ target }) => !granted.some((credential) => credential.target === target)),
  ],
  shows: (wanted) => wanted.map(({ file }) => file).join(', '),
  adds: true,
  grants: (granted) => (granted.length === 0 ? 'none' : granted.map(({ file }) => file).join(', ')),
  sets: 'always',
}

const CREDENTIAL = 'FILE[:TARGET][:optional]'

/** Its place begins with a slash, or with `~/` for the home inside. */
function credentialFile(text: string): FlagValues {
  const [, rest = text, word] = /^(.+?)(:optional)?$/s.exec(text) ?? []
  const [, file = rest, target] = /^(.*):(~?\/.*)$/s.exec(rest) ?? []
  if (file === '') return { problem: `expected ${CREDENTIAL}, got ${quoteValue(text)}.` }
  const optional = word === undefined ? {} : { optional: true }
  return { values: { credentials: [{ file, ...(target === undefined ? {} : { target }), ...optional }] } }
}

export const credentials: Key<readonly CredentialInput[], readonly CredentialInput[], readonly Credential[]> & {
  readonly default: readonly CredentialInput[]
} = {
  description: 'Files shown read-only at a fixed place.',
  unit: 'list of mappings',
  examples: [[{ file: '~/.npmrc' }]],
  standard: '[]',
  default: [],
  shape: {
    kind: 'mappings',
    fields: {
      file: {
        ...field<string, string>(readHostPath, { description: 'The file on the host.', unit: 'path', type: 'string' }),
        isRequired: true,
      },
      target: field<string, string>(readCredentialTarget, {
        description: 'Where it appears, ~/ being the home inside.',
        unit: 'absolute path',
        examples: ['~/.npmrc'],
        standard: 'the same place below the home',
        type: 'string',
      }),
      optional: toggleField('Leave it out when the file is missing.'),
    },
  },
  merging: {
    resolve: (parsed: readonly CredentialInput[], source) =>
      parsed.map(({ file: written, target, optional }, index) => {
        const file = resolveHostPath(written, source)
        return {
          file,
          target: target?.replace(/^~(?=\/)/, SANDBOX_HOME) ?? pathBelowHome(file, source.home),
          ...(optional === true ? { optional } : {}),
          origin: source.originOf(`credentials.${index}`),
        }
      }),
    add: addCredentials,
  },
  narrowing: narrowCredentials,
  flags: [
    {
      name: 'credential',
      isRare: true,
      argument: CREDENTIAL,
      group: 'Inside',
      repeats: true,
      help: 'A file shown read-only, at the same place below the home unless TARGET says otherwise.',
      sets: credentialFile,
    },
  ],
}

/* ---- the rest ---- */

export const workdir = scalar<string, string>(readTarget, {
  description: 'Directory inside in which the command starts.',
  unit: 'absolute path',
  type: 'string',
  standard: 'where the caller stands',
  flag: { name: 'workdir', argument: 'DIR', group: 'Inside' },
  narrowing: chosen(),
})

type Terminal = boolean | 'auto'

const readTerminal: Reader<Terminal> = (value) => {
  if (value === 'auto') return understood(value)
  const reading = readBoolean(value)
  return reading.ok ? reading : { ...reading, expected: 'true, false or auto' }
}

export const tty = scalar<Terminal, Terminal>(readTerminal, {
  description: 'The command gets a new terminal; auto: if stdin, stdout and stderr of the caller are terminals.',
  unit: 'true, false or auto',
  type: ['boolean', 'string'],
  enum: [true, false, 'auto'],
  default: false,
  flag: { name: 'tty', group: 'Inside', help: 'The command gets a new terminal.' },
  narrowing: chosen(),
  need: (value) => (value === true ? 'tty' : undefined),
})

const HOME_NAME = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/
const readHomeName: Reader<string> = (value) =>
  typeof value === 'string' && HOME_NAME.test(value)
    ? understood(value)
    : misunderstood(
        'a name of a letter and at most 63 letters, digits, "-", "_" or "." (a directory has a slash: ./home)',
        value,
      )

/** --home of resources.home sets it. */
export const home = scalar<string, string | null>(orNone(readHomeName), {
  description:
    'Name of a home directory that is kept for the next runs of this user in this directory; llm-do homes lists them.',
  unit: 'name or none',
  type: 'string',
  default: 'none',
  narrowing: operatorsOnly('none'),
})

export const gitIdentity = toggle({
  description:
    "git inside has user.name and user.email of the caller's own configuration, with sshAgent also its signing by an SSH key, and nothing else of it.",
  flag: { name: 'git-identity', group: 'Files', isRare: true },
})

export const dieWithParent = toggle({
  description:
    'The run ends, as by SIGTERM, when the process that started llm-do has ended, however that came; not a sandbox of llm-do run.',
  flag: { name: 'die-with-parent', group: 'Limits', isRare: true },
  narrowing: ranked([true, false]),
})

export const sshAgent = toggle({
  description: "The caller's SSH agent can be asked to sign; only its socket is shown.",
  flag: { name: 'ssh-agent', isRare: true, group: 'Inside' },
})
