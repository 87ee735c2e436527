/**
 * Completion of the command line for bash, zsh and fish. Each function of a shell asks `llm-do __complete WORD...` (commands/complete.ts)
 * for everything: the llm-do of PATH, or the one that was typed with an absolute path. It never starts a relative path: a person who
 * types has not decided to run anything yet. Pure.
 *
 * A line of the answer is a word, with its meaning after a tab, or one of:
 *   `:files PREFIX`, `:directories PREFIX`   paths, after the part of the word that stays
 *   `:command N`                             a command line that starts at word N, from 0
 */
import { COMPLETE } from './subcommands.ts'

/** bash cuts words at `=` and `:`: `--memory=1g` arrives as three words. They are put together again, and the last piece is completed. */
const BASH = `# bash completion for llm-do and llm-do-exec; load it with: source <(llm-do completion bash)
_llm_do() {
  local IFS=$' \\t\\n' at word line cur piece program=llm-do last=0
  local words=("\${COMP_WORDS[0]}") starts=(0)
  COMPREPLY=()
  for ((at = 1; at <= COMP_CWORD; at++)); do
    word=\${COMP_WORDS[at]}
    if ((at > 1)) && [[ $word =~ ^[=:]+$ || \${COMP_WORDS[at - 1]} =~ ^[=:]+$ ]] &&
      [[ -z $COMP_LINE || $COMP_LINE == *"\${words[last]}$word"* ]]; then
      words[last]+=$word
    else
      ((last += 1))
      words[last]=$word starts[last]=$at
    fi
  done
  cur=\${words[last]} piece=\${cur##*[=:]}
  [[ \${words[0]} == /* ]] && program=\${words[0]%-exec}
  if [[ \${words[0]##*/} == *-exec ]]; then words[0]=exec; else words=("\${words[@]:1}") starts=("\${starts[@]:1}"); fi
  while IFS= read -r line; do
    case $line in
      :files*) while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$piece") ;;
      :directories*) while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -d -- "$piece") ;;
      :command*)
        at=\${starts[\${line#* }]}
        if declare -F _command_offset >/dev/null; then
          _command_offset "$at"
        else
          ((at == COMP_CWORD)) && word=-cf || word=-f
          while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen $word -- "$cur")
        fi
        ;;
      *) line=\${line%%$'\\t'*} && COMPREPLY+=("\${line#"\${cur%"$piece"}"}") ;;
    esac
  done < <("$program" ${COMPLETE} "\${words[@]}" 2>/dev/null)
}
complete -o filenames -F _llm_do llm-do llm-do-exec
`

const ZSH = `#compdef llm-do llm-do-exec
# zsh completion for llm-do and llm-do-exec; load it with: source <(llm-do completion zsh)
_llm_do() {
  local program=llm-do line prefix first=2
  local -a line_words offers
  [[ $words[1] == /* ]] && program=\${words[1]%-exec}
  line_words=("\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}")
  [[ $words[1] == *-exec ]] && line_words=(exec "\${line_words[@]}") first=1
  for line in "\${(@f)$("$program" ${COMPLETE} "\${line_words[@]}" 2>/dev/null)}"; do
    prefix=\${line#:[a-z]* }
    case $line in
      :files*) compset -P \${(b)prefix}; _files ;;
      :directories*) compset -P \${(b)prefix}; _files -/ ;;
      :command*) shift $((prefix + first - 1)) words; ((CURRENT -= prefix + first - 1)); _normal ;;
      ?*) offers+=("\${\${line//:/\\\\:}/$'\\t'/:}") ;;
    esac
  done
  ((\${#offers})) && _describe word offers
}
# As a file of $fpath this is the body of _llm-do, called for the first completion.
if [[ \${funcstack[1]} == _llm-do ]]; then _llm_do "$@"; else compdef _llm_do llm-do llm-do-exec; fi
`

const FISH = `# fish completion for llm-do and llm-do-exec; load it with: llm-do completion fish | source
function __llm_do
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    if string match -q -- '*-exec' $words[1]
        set words[1] exec
    else
        set -e words[1]
    end
    for line in (command llm-do ${COMPLETE} $words $current 2>/dev/null)
        set -l prefix (string replace -r -- '^:[a-z]* ' '' $line)
        switch $line
            case ':files *'
                string replace -r -- '^' $prefix (__fish_complete_path (string replace -- $prefix '' $current))
            case ':directories *'
                string replace -r -- '^' $prefix (__fish_complete_directories (string replace -- $prefix '' $current))
            case ':command *'
                complete -C (string join ' ' -- (string escape -- $words[(math $prefix + 1)..]) $current)
            case '*'
                echo $line
        end
    end
end
complete -c llm-do -f -a '(__llm_do)'
complete -c llm-do-exec -f -a '(__llm_do)'
`

export const COMPLETIONS = { bash: BASH, zsh: ZSH, fish: FISH } as const
