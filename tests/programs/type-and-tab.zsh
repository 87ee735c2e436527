# type-and-tab.zsh COMPLETION FILE LINE...: types each line and a tab into an interactive zsh, and prints what became of the line.
# FILE is where that shell writes it. A COMPLETION that is a directory is put on $fpath, as that of an installation.
zmodload zsh/zpty
completion=$1 file=$2
shift 2
: >$file # what a shell before this one has left there would be taken for its answer

# Reads what the shell prints meanwhile: nobody else does, and a full terminal would stop it.
await() {
  repeat 1200; do
    [[ -s $file ]] && return
    zpty -r -t shell printed
    sleep 0.05
  done
  exit 1
}

zpty -b shell zsh -f -i
if [[ -d $completion ]]; then zpty -w shell "fpath=(${(q)completion} \$fpath)"; else source="source $completion"; fi
zpty -w shell "autoload -Uz compinit; compinit -u -D; $source; unsetopt beep"
zpty -w shell "tell() { print -r -- \$BUFFER >$file; BUFFER=; }; zle -N tell; bindkey '^I' complete-word '^X' tell; print ready >$file"
await
for line; do
  : >$file
  zpty -w -n shell "$line"$'\t\x18'
  await
  cat $file
done
zpty -d shell
