/** Completion of the command line for bash, zsh and fish, from the declarations. Pure. */
import { EXPLAINED_OPTIONS, type ExplainedOption } from '../policy/option-help.ts'
import { completionsOf, DECLARED } from './subcommands.ts'

const SUBCOMMANDS = DECLARED.map((declaration) => ({ ...declaration, completions: completionsOf(declaration) }))

/** What can be completed for the value of an option. */
type Values =
  | { readonly kind: 'words'; readonly words: readonly string[]; readonly files: boolean }
  | { readonly kind: 'files' | 'directories' | 'anything' }

/** Read off the placeholder: `a|b|FILE` are words and a path, SRC and FILE are paths, DIR is a directory. */
function valuesOf({ argument = '' }: ExplainedOption): Values {
  const parts = argument.split('|')
  const words = parts.filter((part) => /^[a-z_]+$/.test(part))
  const files = parts.some((part) => /^(FILE|SRC)/.test(part))
  if (words.length > 1) return { kind: 'words', words, files }
  if (files) return { kind: 'files' }
  return { kind: argument === 'DIR' ? 'directories' : 'anything' }
}

const flagOf = ({ name }: ExplainedOption) => `--${name}`
const takesValue = ({ argument, isArgumentOptional }: ExplainedOption) => argument !== undefined && !isArgumentOptional

/** Text between single quotes of a POSIX shell. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

function bashValues(option: ExplainedOption): string {
  const values = valuesOf(option)
  const replies: Readonly<Record<Values['kind'], string>> = {
    words: `-W ${quoted(values.kind === 'words' ? values.words.join(' ') : '')}${values.kind === 'words' && values.files ? ' -f' : ''}`,
    files: '-f',
    directories: '-d',
    anything: '',
  }
  const reply = replies[values.kind]
  return reply === '' ? '' : `    ${flagOf(option)}) _llm_do_reply ${reply} ;;\n`
}

/** bash cuts words at `=` and `:`, so `--memory=1g` arrives as three words. */
export function bashCompletion(): string {
  const valued = EXPLAINED_OPTIONS.filter(takesValue).map(flagOf)
  const verbs = SUBCOMMANDS.map(({ name }) => name).join(' ')
  const perVerb = SUBCOMMANDS.filter(({ completions }) => completions.length > 0)
    .map(({ name, completions }) => `      ${name}) _llm_do_reply -W ${quoted(completions.join(' '))} ;;\n`)
    .join('')
  return `# bash completion for llm-do and llm-do-exec; load it with: source <(llm-do completion bash)
_llm_do_reply() {
  local IFS=$' \\t\\n' reply
  COMPREPLY=()
  while IFS= read -r reply; do COMPREPLY+=("$reply"); done < <(compgen "$@" -- "$cur")
}

_llm_do_value() {
  case $1 in
${EXPLAINED_OPTIONS.map(bashValues).join('')}  esac
}

_llm_do() {
  local cur=\${COMP_WORDS[COMP_CWORD]} at=1 option=
  COMPREPLY=()
  if [[ \${COMP_WORDS[0]##*/} == llm-do ]]; then
    if ((COMP_CWORD == 1)); then
      _llm_do_reply -W ${quoted(`${verbs} --help --version`)}
      return
    fi
    if [[ \${COMP_WORDS[1]} != exec ]]; then
      case \${COMP_WORDS[1]} in
${perVerb}      esac
      return
    fi
    at=2
  fi
  while ((at < COMP_CWORD)); do
    option=\${COMP_WORDS[at]}
    if [[ \${COMP_WORDS[at + 1]} == '=' ]]; then
      if ((at + 2 >= COMP_CWORD)); then
        [[ $cur == '=' ]] && cur=
        _llm_do_value "$option"
        return
      fi
      ((at += 3))
      continue
    fi
    case $option in
      --)
        ((at += 1))
        break
        ;;
      ${[...valued, '-c'].join(' | ')})
        if ((at + 1 == COMP_CWORD)); then
          _llm_do_value "$option"
          return
        fi
        ((at += 2))
        ;;
      -?*) ((at += 1)) ;;
      *) break ;;
    esac
  done
  if ((at < COMP_CWORD)) || [[ \${COMP_WORDS[at - 1]} == -- ]]; then
    if declare -F _command_offset >/dev/null; then
      _command_offset "$at"
    elif ((at == COMP_CWORD)); then
      _llm_do_reply -c -f
    else
      _llm_do_reply -f
    fi
  elif [[ $cur == -* ]]; then
    _llm_do_reply -W ${quoted([...EXPLAINED_OPTIONS.map(flagOf), '-c', '--help', '--version', '--'].join(' '))}
  else
    _llm_do_reply -c -f
  fi
}
complete -o filenames -F _llm_do llm-do llm-do-exec
`
}

/** Inside a specification of _arguments these end a part of it. */
const zshText = (text: string) => text.replace(/[\\:[\]]/g, '\\$&')

function zshAction(option: ExplainedOption): string {
  const values = valuesOf(option)
  if (values.kind === 'words') return values.files ? '_files' : `(${values.words.join(' ')})`
  return { files: '_files', directories: '_files -/', anything: '' }[values.kind]
}

function zshSpec(option: ExplainedOption): string {
  const { argument, isArgumentOptional, repeats, help } = option
  const head = `${repeats ? '*' : ''}${flagOf(option)}`
  const text = `[${zshText(help)}]`
  if (argument === undefined) return quoted(`${head}${text}`)
  const value = `${isArgumentOptional ? '::' : ':'}${zshText(argument)}:${zshAction(option)}`
  return quoted(`${head}=${isArgumentOptional ? '-' : ''}${text}${value}`)
}

export function zshCompletion(): string {
  const specs = [
    ...EXPLAINED_OPTIONS.map(zshSpec),
    quoted('-c[Run SCRIPT by /bin/sh -c.]:SCRIPT:'),
    quoted('(- *)--help[Print the usage.]'),
  ]
  const verbs = SUBCOMMANDS.map(({ name, help }) => `    ${quoted(`${zshText(name)}:${help}`)}`).join('\n')
  const perVerb = SUBCOMMANDS.filter(({ completions }) => completions.length > 0)
    .map(({ name, completions }) => `    ${name}) compadd -- ${completions.join(' ')} ;;`)
    .join('\n')
  return `#compdef llm-do llm-do-exec
# zsh completion for llm-do and llm-do-exec; load it with: source <(llm-do completion zsh)
_llm_do_exec() {
  _arguments -S \\
    ${specs.join(' \\\n    ')} \\
    '(-)1:command: _command_names -e' \\
    '*::argument: _normal'
}

_llm_do() {
  local -a verbs
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
    case $words[1] in
    exec) _llm_do_exec ;;
${perVerb}
    esac
  fi
}
compdef _llm_do llm-do llm-do-exec
`
}

function fishOption(condition: string): (option: ExplainedOption) => string {
  return (option) => {
    const values = valuesOf(option)
    const words = values.kind === 'words' ? ` -a ${quoted(values.words.join(' '))}` : ''
    const directories = values.kind === 'directories' ? " -a '(__fish_complete_directories)'" : ''
    const takesFiles = values.kind === 'files' || (values.kind === 'words' && values.files)
    const value = takesValue(option) ? (takesFiles ? ' -r -F' : ' -x') : ''
    return `complete ${condition} -l ${option.name}${value}${words}${directories} -d ${quoted(option.help)}`
  }
}

export function fishCompletion(): string {
  const verbNames = SUBCOMMANDS.map(({ name }) => name).join(' ')
  const verbs = SUBCOMMANDS.map(
    ({ name, help }) =>
      `complete -c llm-do -n 'not __fish_seen_subcommand_from ${verbNames}' -f -a ${name} -d ${quoted(help)}`,
  )
  const words = SUBCOMMANDS.filter(({ completions }) => completions.length > 0).map(
    ({ name, completions }) =>
      `complete -c llm-do -n '__fish_seen_subcommand_from ${name}' -f -a ${quoted(completions.join(' '))}`,
  )
  return [
    '# fish completion for llm-do and llm-do-exec; load it with: llm-do completion fish | source',
    ...verbs,
    ...words,
    ...EXPLAINED_OPTIONS.map(fishOption("-c llm-do -n '__fish_seen_subcommand_from exec'")),
    ...EXPLAINED_OPTIONS.map(fishOption('-c llm-do-exec')),
    '',
  ].join('\n')
}
