/**
 * Completion of the command line for bash, zsh and fish, from the declarations. What changes from moment to moment (profiles, workers, runs)
 * the shell asks `llm-do __complete` for: the llm-do of PATH, or the one that was typed with an absolute path. A relative path is never
 * started: a person who types has not decided to run anything yet. Pure.
 */
import { EXPLAINED_OPTIONS, type ExplainedOption } from '../policy/option-help.ts'
import { COMPLETE, type CompletedPlace, completedPlaces, DECLARED } from './subcommands.ts'

const PLACES = completedPlaces()
/** `exec` is one of them, and what its options are is said once. */
const COMMAND_LINES = PLACES.filter(({ takesCommandLine }) => takesCommandLine)
const NESTED = PLACES.filter(({ path }) => path.includes(' '))
const VERBS = DECLARED.map(({ name }) => name).join(' ')

/** What can be completed for the value of an option. */
interface Values {
  readonly words: readonly string[]
  readonly paths: 'files' | 'directories' | undefined
}

/** Read off the placeholder: `a|b|FILE` are words and a path, SRC, PATH and FILE are paths, DIR is a directory. */
function valuesOf({ argument = '' }: ExplainedOption): Values {
  const parts = argument.replace(/^NAME=(?=SRC)/, '').split('|')
  const words = parts.filter((part) => /^[a-z_]+$/.test(part))
  const hasFiles = parts.some((part) => /^(FILE|SRC|PATH)/.test(part))
  const hasDirectories = parts.some((part) => part.startsWith('DIR'))
  return {
    words: words.length > 1 ? words : [],
    paths: hasFiles ? 'files' : hasDirectories ? 'directories' : undefined,
  }
}

const flagOf = ({ name }: ExplainedOption) => `--${name}`
const takesValue = ({ argument, isArgumentOptional }: ExplainedOption) => argument !== undefined && !isArgumentOptional

/** Text between single quotes of a POSIX shell. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/* ---- bash ---- */

const BASH_PATHS = { files: ' -f', directories: ' -d' } as const

function bashOffers(words: readonly string[], paths: Values['paths'], names: readonly string[]): string {
  const reply = `${words.length === 0 ? '' : ` -W ${quoted(words.join(' '))}`}${paths === undefined ? '' : BASH_PATHS[paths]}`
  return [...(reply === '' ? [] : [`_llm_do_reply${reply}`]), ...names.map((kind) => `_llm_do_names ${kind}`)].join(
    '; ',
  )
}

function bashValues(option: ExplainedOption): string {
  const { words, paths } = valuesOf(option)
  const offers = bashOffers(words, paths, option.completes === undefined ? [] : [option.completes])
  return offers === '' ? '' : `    ${flagOf(option)}) ${offers} ;;\n`
}

const isName = (kind: CompletedPlace['kinds'][number]) => kind !== 'files' && kind !== 'directories'

function bashPlace({ path, words, kinds }: CompletedPlace): string {
  const paths = kinds.find((kind) => kind === 'files' || kind === 'directories')
  const offers = bashOffers(words, paths as Values['paths'], [...new Set(kinds.filter(isName))])
  return offers === '' ? '' : `    ${quoted(path)}) ${offers} ;;\n`
}

/** bash cuts words at `=` and `:`, so `--memory=1g` arrives as three words and `--ro /a:/b` as four; they are put together again. */
export function bashCompletion(): string {
  const valued = EXPLAINED_OPTIONS.filter(takesValue).map(flagOf)
  return `# bash completion for llm-do and llm-do-exec; load it with: source <(llm-do completion bash)
_llm_do_reply() {
  local IFS=$' \\t\\n' reply
  while IFS= read -r reply; do COMPREPLY+=("$reply"); done < <(compgen "$@" -- "$cur")
}

_llm_do_names() {
  local reply
  while IFS= read -r reply; do
    reply=\${reply%%$'\\t'*}
    [[ $reply == "$cur"* ]] && COMPREPLY+=("$reply")
  done < <("$program" ${COMPLETE} "$1" 2>/dev/null)
}

_llm_do_words() {
  local at word last=0
  words=("\${COMP_WORDS[0]}")
  starts=(0)
  for ((at = 1; at <= COMP_CWORD; at++)); do
    word=\${COMP_WORDS[at]}
    if ((at > 1)) && [[ $word =~ ^[=:]+$ || \${COMP_WORDS[at - 1]} =~ ^[=:]+$ ]] &&
      [[ -z $COMP_LINE || $COMP_LINE == *"\${words[last]}$word"* ]]; then
      words[last]+=$word
    else
      ((last += 1))
      words[last]=$word
      starts[last]=$at
    fi
  done
}

# The value of an option: of what readline has cut, the last piece is completed.
_llm_do_value() {
  cur=\${cur##*[=:]}
  case $1 in
${EXPLAINED_OPTIONS.map(bashValues).join('')}  esac
}

_llm_do_verb() {
  case $1 in
${PLACES.map(bashPlace).join('')}  esac
}

_llm_do() {
  local words starts cur at=1 last place program=llm-do
  COMPREPLY=()
  _llm_do_words
  last=$((\${#words[@]} - 1))
  cur=\${words[last]}
  [[ \${words[0]} == /* ]] && program=\${words[0]%-exec}
  if [[ \${words[0]##*/} == llm-do ]]; then
    if ((last == 1)); then
      _llm_do_reply -W ${quoted(`${VERBS} --help --version`)}
      return
    fi
    place=\${words[1]} at=2
    case "$place \${words[2]}" in
      ${NESTED.map(({ path }) => quoted(path)).join(' | ')}) ((last > 2)) && place="$place \${words[2]}" at=3 ;;
    esac
    _llm_do_verb "$place"
    case $place in
      ${COMMAND_LINES.map(({ path }) => quoted(path)).join(' | ')}) ;;
      *) return ;;
    esac
  fi
  while ((at < last)); do
    case \${words[at]} in
      --)
        ((at += 1))
        break
        ;;
      ${[...valued, '-c'].join(' | ')})
        if ((at + 1 == last)); then
          _llm_do_value "\${words[at]}"
          return
        fi
        ((at += 2))
        ;;
      -?*) ((at += 1)) ;;
      *) break ;;
    esac
  done
  if ((at < last)) || [[ \${words[at - 1]} == -- ]]; then
    if declare -F _command_offset >/dev/null; then
      _command_offset "\${starts[at]}"
    elif ((at == last)); then
      _llm_do_reply -c -f
    else
      _llm_do_reply -f
    fi
  elif [[ $cur == --*=* ]]; then
    _llm_do_value "\${cur%%=*}"
  elif [[ $cur == -* ]]; then
    _llm_do_reply -W ${quoted([...EXPLAINED_OPTIONS.map(flagOf), '-c', '--help', '--version', '--'].join(' '))}
  else
    _llm_do_reply -c -f
  fi
}
complete -o filenames -F _llm_do llm-do llm-do-exec
`
}

/* ---- zsh ---- */

/** Inside a specification of _arguments these end a part of it. */
const zshText = (text: string) => text.replace(/[\\:[\]]/g, '\\$&')

const ZSH_PATHS = { files: '_files', directories: '_files -/' } as const

/** A function gets words of _arguments' own unless a blank comes before it. */
function zshAction(option: ExplainedOption): string {
  const { words, paths } = valuesOf(option)
  if (option.completes !== undefined) return ` _llm_do_names ${option.completes}${paths === undefined ? '' : ' files'}`
  if (option.argument?.startsWith('NAME=SRC')) return '{compset -P "*="; _files}'
  if (paths !== undefined) return ZSH_PATHS[paths]
  return words.length === 0 ? '' : `(${words.join(' ')})`
}

function zshSpec(option: ExplainedOption): string {
  const { argument, isArgumentOptional, repeats, help } = option
  const head = `${repeats ? '*' : ''}${flagOf(option)}`
  const text = `[${zshText(help)}]`
  if (argument === undefined) return quoted(`${head}${text}`)
  const value = `${isArgumentOptional ? '::' : ':'}${zshText(argument)}:${zshAction(option)}`
  return quoted(`${head}=${isArgumentOptional ? '-' : ''}${text}${value}`)
}

function zshPlace({ path, words, kinds, takesCommandLine }: CompletedPlace): string {
  const offers = [
    ...(words.length === 0 ? [] : [`compadd -- ${words.join(' ')}`]),
    ...[...new Set(kinds)].map((kind) =>
      kind === 'files' || kind === 'directories' ? ZSH_PATHS[kind] : `_llm_do_names ${kind}`,
    ),
    ...(takesCommandLine ? ['_llm_do_exec'] : []),
  ]
  return offers.length === 0 ? '' : `    ${quoted(path)}) ${offers.join('; ')} ;;\n`
}

export function zshCompletion(): string {
  const specs = [
    ...EXPLAINED_OPTIONS.map(zshSpec),
    quoted('-c[Run SCRIPT by /bin/sh -c.]:SCRIPT:'),
    quoted('(- *)--help[Print the usage.]'),
  ]
  const verbs = DECLARED.map(({ name, help }) => `    ${quoted(`${zshText(name)}:${help}`)}`).join('\n')
  return `#compdef llm-do llm-do-exec
# zsh completion for llm-do and llm-do-exec; load it with: source <(llm-do completion zsh)
_llm_do_names() {
  local -a names
  names=(\${(f)"$($program ${COMPLETE} $1 2>/dev/null)"})
  names=(\${\${names//:/\\\\:}/$'\\t'/:})
  ((\${#names})) && _describe -t $1 $1 names
  [[ $2 == files ]] && _files
}

_llm_do_exec() {
  _arguments -S \\
    ${specs.join(' \\\n    ')} \\
    '(-)1:command: _command_names -e' \\
    '*::argument: _normal'
}

_llm_do() {
  local -a verbs
  local program=llm-do place
  [[ $words[1] == /* ]] && program=\${words[1]%-exec}
  verbs=(
${verbs}
  )
  if [[ $service == llm-do-exec ]]; then
    _llm_do_exec
  elif ((CURRENT == 2)); then
    _describe command verbs
  else
    shift words
    ((CURRENT -= 1))
    place=$words[1]
    if ((CURRENT > 2)); then
      case "$words[1] $words[2]" in
      ${NESTED.map(({ path }) => quoted(path)).join(' | ')})
        place="$words[1] $words[2]"
        shift words
        ((CURRENT -= 1))
        ;;
      esac
    fi
    case $place in
${PLACES.map(zshPlace).join('')}    esac
  fi
}
# As a file of $fpath this is the body of _llm-do, called for the first completion; sourced, it is nobody's.
if [[ \${funcstack[1]} == _llm-do ]]; then _llm_do "$@"; else compdef _llm_do llm-do llm-do-exec; fi
`
}

/* ---- fish ---- */

const FISH_PATHS = { files: '(__fish_complete_path)', directories: '(__fish_complete_directories)' } as const
const fishNames = (kind: string) => `(command llm-do ${COMPLETE} ${kind} 2>/dev/null)`

function fishOption(condition: string): (option: ExplainedOption) => string {
  return (option) => {
    const { words, paths } = valuesOf(option)
    const offers = [
      ...(words.length === 0 ? [] : [words.join(' ')]),
      ...(option.completes === undefined ? [] : [fishNames(option.completes)]),
      ...(paths === 'directories' ? [FISH_PATHS.directories] : []),
    ].map((offer) => ` -a ${quoted(offer)}`)
    const value = takesValue(option) ? (paths === 'files' ? ' -r -F' : ' -x') : ''
    return `complete ${condition} -l ${option.name}${value}${offers.join('')} -d ${quoted(option.help)}`
  }
}

function fishPlace({ path, words, kinds }: CompletedPlace): readonly string[] {
  const offers = [
    ...(words.length === 0 ? [] : [words.join(' ')]),
    ...[...new Set(kinds)].map((kind) =>
      kind === 'files' || kind === 'directories' ? FISH_PATHS[kind] : fishNames(kind),
    ),
  ]
  return offers.map((offer) => `complete -c llm-do -n '__llm_do_place ${path}' -f -a ${quoted(offer)}`)
}

export function fishCompletion(): string {
  const verbs = DECLARED.map(
    ({ name, help }) =>
      `complete -c llm-do -n 'test (count (commandline -opc)) -eq 1' -f -a ${name} -d ${quoted(help)}`,
  )
  const isCommandLine = COMMAND_LINES.map(({ path }) => `__llm_do_place ${path}`).join('; or ')
  return [
    '# fish completion for llm-do and llm-do-exec; load it with: llm-do completion fish | source',
    'function __llm_do_place',
    '    set -l words (commandline -opc)',
    '    set -l place $words[2]',
    `    contains -- "$place $words[3]" ${NESTED.map(({ path }) => quoted(path)).join(' ')}`,
    '    and set place "$place $words[3]"',
    '    test "$place" = "$argv"',
    'end',
    ...verbs,
    ...PLACES.flatMap(fishPlace),
    ...EXPLAINED_OPTIONS.map(fishOption(`-c llm-do -n '${isCommandLine}'`)),
    ...EXPLAINED_OPTIONS.map(fishOption('-c llm-do-exec')),
    '',
  ].join('\n')
}
