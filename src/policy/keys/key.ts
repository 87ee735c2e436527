/**
 * How a policy key is declared, and the constructors that keep declarations short.
 *
 * A declaration holds everything the program knows of its key: the accepted values, the default, the text of the manual, how layers
 * merge, how a worker may narrow it, its flags and its need. Nothing here loads zod: a cached policy is merged
 * without it. schema.ts makes the validating schema of the same table.
 */
import type { Reader } from '../../text/units.ts'
import type { LayerSource, SetKey } from '../layer-source.ts'
import { oneOf, readBoolean } from '../readers.ts'
import type { Need } from '../values.ts'
import { type AnyNarrowing, chosen, type Narrowing, ranked, united } from './narrowing.ts'

/** Texts about a key for people. The names are those of JSON schema, so that it can be generated. */
export interface KeyMeaning {
  /** One line. */
  readonly description: string
  /** Form of a value, in words, e.g. `size`, `time`, `cores`. */
  readonly unit: string
  /** The default, as a person would write it; absent when there is none. */
  readonly standard?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly (string | boolean)[]
  /** Values that an editor offers, where the unit alone suggests none. */
  readonly examples?: readonly unknown[]
}

/** A size, time or number as people write it. */
export type Measured = string | number

export type Fields = Readonly<Record<string, Field>>

/** Form of a value in a profile. */
export type Shape =
  | { readonly kind: 'value'; readonly read: Reader<unknown> }
  | { readonly kind: 'list'; readonly read: Reader<unknown> }
  | { readonly kind: 'mapping'; readonly fields: Fields }
  | { readonly kind: 'mappings'; readonly fields: Fields }
  /** A word, or a mapping that says the same in full. */
  | {
      readonly kind: 'word-or-mapping'
      readonly read: Reader<unknown>
      readonly fields: Fields
      readonly join: (mapping: never) => unknown
    }

/** A value with its text in the manual. `Input` is what a person writes, `Parsed` what it is read as. */
export interface Field<Input = unknown, Parsed = unknown> extends KeyMeaning {
  readonly shape: Shape
  /** Only in lists of mappings: the mapping is refused without it. */
  readonly isRequired?: true
  /** For the compiler alone; never set. */
  readonly types?: { readonly input: Input; readonly parsed: Parsed }
}

export type OptionGroup = 'Policy' | 'Files' | 'Network' | 'Limits' | 'Inside' | 'Backend' | 'Workers' | 'Output'

/** The setting of one value of a flag, as a profile would write it, or (without the place) why it is refused. */
export type FlagValues = { readonly values: Readonly<Record<string, unknown>> } | { readonly problem: string }

/** Names that exist at a moment, with which a shell completes a value. */
export type CompletedNames = 'profiles' | 'workers' | 'layers' | 'sandboxes' | 'refused-hosts' | 'homes'

/** A flag of the command line that sets the key; its environment twin comes with it. */
export interface KeyFlag {
  /** Long name without dashes. */
  readonly name: string
  /** Placeholder of the value in the usage; absent = a switch. */
  readonly argument?: string
  readonly group: OptionGroup
  /** May be given more than once; every value counts. `split`: one value may be several, with commas between them. */
  readonly repeats?: true | 'split'
  /** One line; absent = that of the key. */
  readonly help?: string
  /** Below the key, where the flag sets only a part: `mode` of `network`. */
  readonly part?: string
  readonly standard?: string
  readonly completes?: CompletedNames
  /** The short help only names it, after those that people look for; the manual explains it. */
  readonly isRare?: true
  /** Absent = the text is the value of the key, or an element of its list, and a switch sets it to true. */
  readonly sets?: (text: string) => FlagValues
}

/**
 * How the values of several layers become one. Typed loosely, so that keys of all types fit one table: what belongs to one key is
 * compared by the constructors below.
 */
export interface Merging {
  /** Resolves a layer's value by the layer's place; absent = the value itself. */
  readonly resolve?: (parsed: never, source: LayerSource) => unknown
  /** Adds a higher layer's resolved value to the sum of those below, undefined where there is none. */
  readonly add: (below: never, above: never) => unknown
  /** The dotted keys that a resolved value sets; absent = the key itself. */
  readonly setsKeys?: (above: never) => readonly SetKey[]
  /** The sum as policies hold it; absent = the sum itself. */
  readonly finish?: (sum: never) => unknown
}

/** A key, with the value that a policy holds for it. */
export interface Key<Input = unknown, Parsed = unknown, Value = unknown> extends Field<Input, Parsed> {
  readonly default?: Input
  readonly merging: Merging
  /** How workshops and workers may change it; by part where it is a mapping; absent: narrow.ts lays zones itself. */
  readonly narrowing?: AnyNarrowing | { readonly parts: Readonly<Record<string, AnyNarrowing>> }
  readonly flags: readonly KeyFlag[]
  /** The need of a run with this value. */
  readonly need?: (value: never) => Need | undefined
  /** For the compiler alone; never set. */
  readonly value?: Value
}

/** Keys below one name: `resources.memory`. */
export interface Section<Keys extends Readonly<Record<string, Key>> = Readonly<Record<string, Key>>> {
  readonly keys: Keys
  /** Old names of keys, still read. */
  readonly renamed: Readonly<Record<string, string>>
}

export const section = <const Keys extends Readonly<Record<string, Key>>>(
  keys: Keys,
  renamed: Readonly<Record<string, string>> = {},
): Section<Keys> => ({ keys, renamed })

export const isSection = (entry: Key | Section): entry is Section => 'keys' in entry

/** A value of a mapping in a list: not a key, so it has no flag and no default of the policy. */
export const field = <Input, Parsed>(read: Reader<Parsed>, meaning: KeyMeaning): Field<Input, Parsed> => ({
  ...meaning,
  shape: { kind: 'value', read },
})

export const listField = <Element>(
  read: Reader<Element>,
  meaning: KeyMeaning,
): Field<readonly string[], readonly Element[]> => ({
  ...meaning,
  shape: { kind: 'list', read },
})

type Declared<Value> = KeyMeaning & {
  readonly flag?: KeyFlag
  readonly narrowing?: Narrowing<Value, Value>
  readonly need?: (value: Value) => Need | undefined
}

const replace = <Value>(_below: Value | undefined, above: Value): Value => above

/** A key of which the highest layer's value counts. With a default a policy always has it. */
export function scalar<Input, Value>(
  read: Reader<Value>,
  declared: Declared<Value> & { readonly default: Input },
): Key<Input, Value, Value> & { readonly default: Input }
export function scalar<Input, Value>(read: Reader<Value>, declared: Declared<Value>): Key<Input, Value, Value>
export function scalar<Input, Value>(
  read: Reader<Value>,
  { flag, narrowing = chosen<Value>(), ...rest }: Declared<Value> & { readonly default?: Input },
): Key<Input, Value, Value> {
  const standard = rest.standard ?? (rest.default === undefined ? undefined : String(rest.default))
  return {
    ...rest,
    ...(standard === undefined ? {} : { standard }),
    shape: { kind: 'value', read },
    merging: { add: replace },
    narrowing,
    flags: flag === undefined ? [] : [flag],
  }
}

/** A key that is on or off; a worker may switch it off only, unless its narrowing says otherwise. */
export const toggle = (
  declared: Omit<Declared<boolean>, 'unit' | 'type'>,
): Key<boolean, boolean, boolean> & { readonly default: boolean } =>
  scalar<boolean, boolean>(readBoolean, {
    unit: 'true or false',
    type: 'boolean',
    default: false,
    narrowing: ranked([false, true]),
    ...declared,
  })

type WordDeclared<Word> = Omit<Declared<Word>, 'unit' | 'type' | 'enum'>

/** A key that is one of some words. */
export function word<const Word extends string>(
  words: readonly Word[],
  declared: WordDeclared<NoInfer<Word>> & { readonly default: NoInfer<Word> },
): Key<Word, Word, Word> & { readonly default: Word }
export function word<const Word extends string>(
  words: readonly Word[],
  declared: WordDeclared<NoInfer<Word>>,
): Key<Word, Word, Word>
export function word<Word extends string>(
  words: readonly Word[],
  declared: WordDeclared<Word> & { readonly default?: Word },
): Key<Word, Word, Word> {
  return scalar<Word, Word>(oneOf(words), { ...wordMeaning(words), ...declared })
}

const wordMeaning = (words: readonly string[]) => ({ unit: 'word', type: 'string', enum: words })

/** The same for a value of a mapping. */
export const wordField = <const Word extends string>(
  words: readonly Word[],
  meaning: Pick<KeyMeaning, 'description' | 'standard'>,
): Field<Word, Word> => field(oneOf(words), { ...wordMeaning(words), ...meaning })

export const toggleField = (description: string): Field<boolean, boolean> =>
  field(readBoolean, { description, unit: 'true or false', standard: 'false', type: 'boolean' })

/** A list that every layer adds to; each value counts once. */
export function list<Element>(
  read: Reader<Element>,
  { flag, narrowing = united<Element>(), ...rest }: Declared<readonly Element[]>,
): Key<readonly string[], readonly Element[], readonly Element[]> & { readonly default: readonly string[] } {
  return {
    ...rest,
    standard: '[]',
    default: [],
    shape: { kind: 'list', read },
    merging: { add: unite },
    narrowing,
    flags: flag === undefined ? [] : [flag],
  }
}

export const unite = <Value>(below: readonly Value[] | undefined, above: readonly Value[]): readonly Value[] => [
  ...new Set([...(below ?? []), ...above]),
]
