/** A command line that is being typed -> what its last word can become, from the declarations. Pure. */
import { EXPLAINED_OPTIONS, type ExplainedOption } from '../policy/option-help.ts'
import {
  DECLARED,
  type FlagDeclaration,
  isTakenBy,
  type NamedThings,
  type SubcommandDeclaration,
} from './subcommands.ts'

export type Offer = readonly [word: string, meaning: string]

export interface Completion {
  readonly offers?: readonly Offer[]
  /** Names that exist at the moment. */
  readonly names?: readonly NamedThings[]
  readonly paths?: 'files' | 'directories' | undefined
  /** The part of the word before a name or path. */
  readonly prefix?: string
  /** The command that starts at this word: its own completion decides. */
  readonly commandAt?: number
}

interface Option {
  readonly name: string
  readonly help: string
  readonly argument?: string
  readonly isArgumentOptional?: true
  readonly choices?: readonly string[]
  readonly completes?: NamedThings
}

const SCRIPT: Option = { name: '-c', argument: 'SCRIPT', help: 'Run SCRIPT by /bin/sh -c.' }
const HELP: Offer = ['--help', 'Print the usage.']

const named = <O extends ExplainedOption | FlagDeclaration>(option: O): Option =>
  ({ ...option, name: `--${option.name}` }) as Option

/** @param words after the name of the program; the last one is being typed */
export function completionOf(words: readonly string[]): Completion {
  const [verb = '', first = ''] = words
  if (words.length < 2) {
    const verbs = DECLARED.map(({ name, help }): Offer => [name, help])
    return { offers: [...verbs, HELP, ['--version', 'Print the version.']] }
  }
  const declared = DECLARED.find(({ name }) => name === verb)
  if (declared === undefined) return {}
  const action = words.length > 2 ? declared.actions?.find(({ name }) => name === first) : undefined
  return completionIn(action ?? declared, words, action === undefined ? 1 : 2)
}

/** @param from where the words of this declaration start */
function completionIn(declared: SubcommandDeclaration, words: readonly string[], from: number): Completion {
  const options = optionsOf(declared)
  const last = words.length - 1
  const current = words[last] ?? ''
  const optionNamed = (word = '') => options.find(({ name }) => name === word)
  const isValue = (at: number) => {
    const option = at > from ? optionNamed(words[at - 1]) : undefined
    return option?.argument !== undefined && option.isArgumentOptional !== true
  }
  if (declared.takesCommandLine) {
    for (let at = from; at < last; at += isValue(at + 1) ? 2 : 1) {
      if (words[at] === '--') return { commandAt: at + 1 }
      if (!words[at]?.startsWith('-')) return { commandAt: at }
    }
  }
  const option = isValue(last) ? optionNamed(words[last - 1]) : undefined
  if (option !== undefined) return offersFor(option, '', current)
  const [, name, value] = /^(--[^=]+)=(.*)$/s.exec(current) ?? []
  const assigned = optionNamed(name)
  if (assigned !== undefined) return offersFor(assigned, `${assigned.name}=`, value ?? '')
  if (current.startsWith('-') || !declared.takesCommandLine) return operandsOf(declared, options)
  return { ...(last === from && { offers: actionsOf(declared) }), commandAt: last }
}

const actionsOf = ({ actions = [] }: SubcommandDeclaration) => actions.map(({ name, help }): Offer => [name, help])

function optionsOf(declared: SubcommandDeclaration): readonly Option[] {
  const shared = EXPLAINED_OPTIONS.filter(declared.takesCommandLine ? () => true : isTakenBy(declared)).map(named)
  return [...(declared.flags ?? []).map(named), ...shared, ...(declared.takesCommandLine ? [SCRIPT] : [])]
}

function operandsOf(declared: SubcommandDeclaration, options: readonly Option[]): Completion {
  const { arguments: operands = [], takesCommandLine } = declared
  const kinds = operands.flatMap(({ completes }) => completes ?? [])
  return {
    offers: [
      ...actionsOf(declared),
      ...operands.flatMap(({ choices = [] }) => choices.map((choice): Offer => [choice, ''])),
      ...options.map(({ name, help }): Offer => [name, help]),
      HELP,
      ...(takesCommandLine ? [['--', 'The command follows.'] as const] : []),
    ],
    names: [...new Set(kinds)].filter((kind) => kind !== 'files' && kind !== 'directories'),
    paths: kinds.find((kind) => kind === 'files' || kind === 'directories'),
  }
}

/** Read off the placeholder: `a|b|FILE` are words and a path, SRC, PATH and FILE are paths, DIR is a directory. */
function offersFor({ argument = '', completes, choices }: Option, prefix: string, value: string): Completion {
  const [zone = ''] = argument.startsWith('NAME=SRC') ? (/^[^=]*=/.exec(value) ?? []) : []
  const parts = argument.replace(/^NAME=(?=SRC)/, '').split('|')
  const words = choices ?? parts.filter((part) => /^[a-z_]+$/.test(part))
  const hasFiles = parts.some((part) => /^(FILE|SRC|PATH)/.test(part))
  const hasDirectories = parts.some((part) => part.startsWith('DIR'))
  return {
    offers: words.length > 1 ? words.map((word) => [`${prefix}${word}`, '']) : [],
    names: completes === undefined ? [] : [completes],
    paths: hasFiles ? 'files' : hasDirectories ? 'directories' : undefined,
    prefix: `${prefix}${zone}`,
  }
}
