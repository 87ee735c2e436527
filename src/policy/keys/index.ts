/** Every key of a policy. Each is declared once, in a file of this folder; the order is the order of the manual. */
import { readLine, readProfileName } from '../readers.ts'
import { backend, cgroupParent, docker, engine, image, pool, runtime } from './backend.ts'
import { caches } from './caches.ts'
import { cow } from './copy-on-write.ts'
import { devices, gpu } from './devices.ts'
import { explain } from './explain.ts'
import { repository, samePath, workspace, zones } from './files.ts'
import { credentials, dieWithParent, env, gitIdentity, home, sshAgent, tty, workdir } from './inside.ts'
import { type Fields, field, isSection, type Key, type Section } from './key.ts'
import { network } from './network.ts'
import { resources } from './resources.ts'
import { bestEffort, hide, protect, protectNot, requireNeeds, seccomp, selfInside, toolchains } from './walls.ts'

/** Keys of a profile that describe the file and are not part of a policy. */
export const ABOUT = {
  extends: field<string, string>(readProfileName, {
    description: 'The profile that this one starts from: a name, or a path relative to this file.',
    unit: 'name or path',
    type: 'string',
  }),
  description: field<string, string>(readLine, {
    description: 'One line for people.',
    unit: 'text',
    examples: ['Tests of this project, offline.'],
    type: 'string',
  }),
} as const satisfies Fields

export const KEYS = {
  require: requireNeeds,
  bestEffort,
  backend,
  engine,
  image,
  runtime,
  docker,
  seccomp,
  pool,
  zones,
  workspace,
  samePath,
  repository,
  cow,
  caches,
  hide,
  protect,
  protectNot,
  network,
  devices,
  gpu,
  resources,
  cgroupParent,
  env,
  workdir,
  tty,
  dieWithParent,
  home,
  gitIdentity,
  sshAgent,
  credentials,
  toolchains,
  selfInside,
  explain,
} as const satisfies Readonly<Record<string, Key | Section>>

export interface NamedKey {
  /** Dotted: `resources.memory`. */
  readonly path: string
  readonly key: Key
}

const keysOf = ([name, entry]: readonly [string, Key | Section]): readonly NamedKey[] =>
  isSection(entry)
    ? Object.entries(entry.keys).map(([inner, key]) => ({ path: `${name}.${inner}`, key }))
    : [{ path: name, key: entry }]

/** All keys with their dotted paths. */
export const ALL_KEYS: readonly NamedKey[] = Object.entries(KEYS as Readonly<Record<string, Key | Section>>).flatMap(
  keysOf,
)

/* ---- types of the table ---- */

type Entries = typeof KEYS
type Optional<T> = { readonly [K in keyof T]?: T[K] | undefined }

type InputOf<E> =
  E extends Section<infer Keys>
    ? Optional<{ [K in keyof Keys]: InputOf<Keys[K]> }>
    : E extends Key<infer Input>
      ? Input
      : never
type ParsedOf<E> =
  E extends Section<infer Keys>
    ? Optional<{ [K in keyof Keys]: ParsedOf<Keys[K]> }>
    : E extends Key<unknown, infer Parsed>
      ? Parsed
      : never

/** The keys of a policy as a person writes them; nothing is checked yet. */
export type SandboxInput = Optional<{ [K in keyof Entries]: InputOf<Entries[K]> }> & {
  readonly extends?: string | undefined
  readonly description?: string | undefined
}
/** The same after reading: bytes, milliseconds, canonical words. */
export type ParsedSandbox = Optional<{ [K in keyof Entries]: ParsedOf<Entries[K]> }> & {
  readonly extends?: string | undefined
  readonly description?: string | undefined
}

type ValueOf<E> =
  E extends Section<infer Keys> ? Values<Keys> : E extends Key<unknown, unknown, infer Value> ? Value : never
type Always<T> = { [K in keyof T]: T[K] extends { readonly default: unknown } | Section ? K : never }[keyof T]

/** The values of a policy: every key with a default, and those without one where a layer sets them. */
export type Values<T> = { readonly [K in Always<T>]: ValueOf<T[K]> } & {
  readonly [K in Exclude<keyof T, Always<T>>]?: ValueOf<T[K]>
}
export type PolicyValues = Values<Entries>
