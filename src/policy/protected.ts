/**
 * The names that are protected without being asked for: what a program of the host runs, or takes its orders from, without the user
 * asking for it. Data only; docs/reference/protected.md shows the list (a test compares the two).
 *
 * What a user starts on purpose is not here: Makefile, package.json, a script. Repositories are protected at every level of a zone and
 * in their own way (REPOSITORY_SYSTEMS), and with them what the configuration of git names (native/lib/guard-config.c).
 *
 * Each name is from the manual of its tool, with every extension that the tool accepts; where a tool takes several names for one file,
 * the row is made by `inForms`.
 */
import { listItem } from '../text/markdown.ts'

/** `zone`: at the root of every rw zone, and in home directories. `home`: only in home directories. */
export type ProtectedRoot = 'zone' | 'home'

export interface ProtectedName {
  /** Relative to the root of the zone, or to the home directory. */
  readonly name: string
  readonly where: ProtectedRoot
  /** The program that runs or obeys it. */
  readonly tool: string
  /** When, or what for. */
  readonly why: string
}

type Row = readonly [name: string, tool: string, why: string]

/** One row for each stem with each extension. */
const inForms = (stems: readonly string[], extensions: readonly string[], tool: string, why: string): readonly Row[] =>
  stems.flatMap((stem) => extensions.map((extension): Row => [`${stem}.${extension}`, tool, why]))

const YAML = ['yml', 'yaml'] as const

const IN_ZONES: readonly Row[] = [
  // Coding agents.
  ['.mcp.json', 'coding agents', 'start the servers it names'],
  ['.claude', 'Claude Code', 'runs its hooks, obeys its permissions, agents and commands'],
  ['.codex', 'Codex', 'starts its servers, obeys its rules'],
  ['.agents', 'coding agents', 'obey its skills and run their scripts'],
  ['.gemini', 'Gemini CLI', 'runs its hooks and extensions, starts its servers'],
  ['.qwen', 'Qwen Code', 'starts the servers of its settings'],
  ['.cursor', 'Cursor', 'runs its hooks, starts the servers of mcp.json, obeys its rules'],
  ['.cursorrules', 'Cursor', 'obeys it'],
  ['.windsurf', 'Windsurf', 'runs its hooks and workflows, obeys its rules'],
  ['.windsurfrules', 'Windsurf', 'obeys it'],
  ['.kiro', 'Kiro', 'runs its hooks, starts the servers of its settings'],
  ['.amazonq', 'Amazon Q', 'starts the servers of its settings, obeys its rules'],
  ['.clinerules', 'Cline', 'runs its hooks, obeys its rules'],
  ['.roo', 'Roo Code', 'starts the servers of mcp.json, obeys its rules'],
  ['.kilocode', 'Kilo Code', 'starts the servers of mcp.json, obeys its rules'],
  ['.continue', 'Continue', 'starts the servers it names, obeys its rules'],
  ['.opencode', 'OpenCode', 'loads its plugins and tools'],
  ['opencode.json', 'OpenCode', 'starts the servers it names, obeys its permissions'],
  ['opencode.jsonc', 'OpenCode', 'starts the servers it names, obeys its permissions'],
  ['.openhands', 'OpenHands', 'runs its setup.sh at the start of a session'],
  ['.aider.conf.yml', 'aider', 'runs its lint and test commands'],
  ['.agent', 'Antigravity', 'obeys its rules and workflows'],
  ['.crush', 'Crush', 'keeps its data and commands in it'],
  ['.crush.json', 'Crush', 'starts the servers and language servers it names'],
  ['crush.json', 'Crush', 'starts the servers and language servers it names'],
  ['.factory', 'Factory', 'starts the servers of mcp.json, runs its hooks and commands'],
  ['.junie', 'Junie', 'starts the servers of mcp.json, obeys its guidelines'],
  ['.augment', 'Augment', 'obeys its rules and runs its commands'],
  ['.trae', 'Trae', 'starts the servers of mcp.json, obeys its rules'],
  ['.rovodev', 'Rovo Dev', 'starts the servers it names, obeys its permissions'],
  ['.amp', 'Amp', 'starts the servers of its settings, obeys its permissions'],
  ['.pi', 'pi', 'loads its extensions'],
  // Editors.
  ['.vscode', 'Visual Studio Code', 'runs its tasks, uses the programs its settings name'],
  ['.devcontainer', 'Visual Studio Code', 'runs its initializeCommand on the host'],
  ['.devcontainer.json', 'Visual Studio Code', 'runs its initializeCommand on the host'],
  ['.idea', 'JetBrains editors', 'run its tasks and watchers'],
  ['.zed', 'Zed', 'runs its tasks, starts the language servers its settings name'],
  ['.helix', 'Helix', 'starts the language servers its languages.toml names'],
  ['.fleet', 'JetBrains Fleet', 'runs the tasks of run.json'],
  ['.vs', 'Visual Studio', 'runs the tasks of tasks.vs.json'],
  ['.vim/coc-settings.json', 'vim', 'starts the language servers it names (coc.nvim)'],
  ['.dir-locals.el', 'Emacs', 'sets variables from it for each file that is opened'],
  ['.dir-locals-2.el', 'Emacs', 'reads it as .dir-locals.el'],
  ['.gitpod.yml', 'Gitpod', 'runs its tasks when a workspace opens'],
  ['.idx', 'Firebase Studio', 'builds its environment when a workspace opens'],
  ['.codesandbox', 'CodeSandbox', 'runs its tasks when a workspace opens'],
  ['.replit', 'Replit', 'runs its commands when a workspace opens'],
  ['.exrc', 'vim, neovim', 'run it in this directory where exrc is set'],
  ['.vimrc', 'vim', 'runs it in this directory where exrc is set'],
  ['.gvimrc', 'vim', 'runs it in this directory where exrc is set'],
  ['.nvimrc', 'neovim', 'runs it in this directory where exrc is set'],
  ['.nvim.lua', 'neovim', 'runs it in this directory where exrc is set'],
  // Shells, and programs that act when one enters the directory.
  ['.envrc', 'direnv', 'runs it when a shell enters the directory'],
  ['.direnv', 'direnv', 'runs the environment kept in it from .envrc'],
  ['.autoenv.zsh', 'zsh-autoenv', 'runs it when a shell enters the directory'],
  ['.autoenv_leave.zsh', 'zsh-autoenv', 'runs it when a shell leaves the directory'],
  ['.rvmrc', 'rvm', 'runs it when a shell enters the directory that was trusted once'],
  ['.prototools', 'proto', 'loads the plugins it names'],
  ['mise.toml', 'mise', 'runs its hooks when a shell enters the directory that was trusted once'],
  ['mise.local.toml', 'mise', 'reads it as mise.toml'],
  ['.mise.toml', 'mise', 'reads it as mise.toml'],
  ['.mise.local.toml', 'mise', 'reads it as mise.toml'],
  ['.mise', 'mise', 'reads its config.toml as mise.toml'],
  ['.config/mise', 'mise', 'reads its files as mise.toml'],
  ['.config/mise.toml', 'mise', 'reads it as mise.toml'],
  ['mise/config.toml', 'mise', 'reads it as mise.toml'],
  ['.tool-versions', 'mise', 'ran its templates without trust before 2026.3.10 (CVE-2026-33646)'],
  // Commits.
  ['.gitconfig', 'git', 'obeys it where include.path names it, as many projects do'],
  ['.husky', 'git', 'runs it as hooks (core.hooksPath)'],
  ['.githooks', 'git', 'runs it as hooks where core.hooksPath names it, as many projects do'],
  ['.pre-commit-config.yaml', 'pre-commit', 'runs its hooks at each commit'],
  // https://lefthook.dev/configuration
  ...inForms(
    ['lefthook', '.lefthook', 'lefthook-local', '.lefthook-local', '.config/lefthook', '.config/lefthook-local'],
    [...YAML, 'toml', 'json', 'jsonc'],
    'lefthook',
    'runs its commands at each commit',
  ),
  ['.lefthook', 'lefthook', 'runs its scripts at each commit'],
  ['.lefthook-local', 'lefthook', 'runs its scripts at each commit'],
  ['.pre-commit-config.yml', 'prek', 'reads it as .pre-commit-config.yaml'],
  ['prek.toml', 'prek', 'runs its hooks at each commit'],
  ['.overcommit.yml', 'overcommit', 'runs its hooks at each commit'],
  ['.git-hooks', 'overcommit', 'runs its hooks at each commit'],
  ['captainhook.json', 'CaptainHook', 'runs its actions at each commit'],
  ['.gitmodules', 'git', 'fetches what it names in each recursive clone and pull'],
  ['.sl/config', 'Sapling', 'runs its hooks and loads its extensions'],
  ['.pijul/config', 'Pijul', 'runs its hooks'],
  ['_darcs/prefs', 'Darcs', 'runs the hooks of defaults'],
  ['.arcconfig', 'Arcanist', 'loads the libraries it names'],
  ...inForms(['.huskyrc'], [...YAML, 'json', 'js'], 'husky', 'runs its commands at each commit (version 4)'),
  ['.huskyrc', 'husky', 'runs its commands at each commit (version 4)'],
  ['.lintstagedrc', 'lint-staged', 'runs its commands at each commit'],
  ...inForms(
    ['.lintstagedrc'],
    [...YAML, 'json', 'js', 'cjs', 'mjs', 'ts', 'cts', 'mts'],
    'lint-staged',
    'runs its commands at each commit',
  ),
  ...inForms(
    ['lint-staged.config'],
    ['js', 'cjs', 'mjs', 'ts', 'cts', 'mts'],
    'lint-staged',
    'runs its commands at each commit',
  ),
  // Continuous integration: with the rights and secrets of the project, after the next push.
  ['.github/workflows', 'GitHub Actions', 'runs it after a push'],
  ['.github/actions', 'GitHub Actions', 'runs it after a push'],
  ['.github/hooks', 'GitHub Copilot', 'runs it as hooks of its agent'],
  ['.github/agents', 'GitHub Copilot', 'obeys its agents, starts the servers they name'],
  ['.gitea/workflows', 'Gitea Actions', 'runs it after a push'],
  ['.forgejo/workflows', 'Forgejo Actions', 'runs it after a push'],
  ['.gitlab-ci.yml', 'GitLab CI', 'runs it after a push'],
  ['.circleci', 'CircleCI', 'runs it after a push'],
  ['.buildkite', 'Buildkite', 'runs it after a push'],
  ...inForms(['buildkite'], [...YAML, 'json'], 'Buildkite', 'runs it after a push'),
  ['.woodpecker', 'Woodpecker', 'runs it after a push'],
  ['.woodpecker.yml', 'Woodpecker', 'runs it after a push'],
  ['.woodpecker.yaml', 'Woodpecker', 'runs it after a push'],
  ['.drone.yml', 'Drone', 'runs it after a push'],
  ...inForms(['.drone'], ['yaml', 'jsonnet', 'star'], 'Drone', 'runs it after a push'),
  ['.travis.yml', 'Travis CI', 'runs it after a push'],
  ['.cirrus.yml', 'Cirrus CI', 'runs it after a push'],
  ...inForms(['.cirrus'], ['yaml', 'star'], 'Cirrus CI', 'runs it after a push'),
  ['azure-pipelines.yml', 'Azure Pipelines', 'runs it after a push'],
  ['azure-pipelines.yaml', 'Azure Pipelines', 'runs it after a push'],
  ['.azure-pipelines', 'Azure Pipelines', 'runs it after a push'],
  ['bitbucket-pipelines.yml', 'Bitbucket Pipelines', 'runs it after a push'],
  ['Jenkinsfile', 'Jenkins', 'runs it after a push'],
  ...inForms(['buildspec'], YAML, 'AWS CodeBuild', 'runs it after a push'),
  ...inForms(['cloudbuild'], [...YAML, 'json'], 'Google Cloud Build', 'runs it after a push'),
  ...inForms(['appveyor', '.appveyor'], ['yml'], 'AppVeyor', 'runs it after a push'),
  ['.tekton', 'Tekton', 'runs it after a push'],
  ['.semaphore', 'Semaphore', 'runs it after a push'],
  ['.build.yml', 'sourcehut', 'runs it after a push'],
  ['.builds', 'sourcehut', 'runs it after a push'],
  ['codemagic.yaml', 'Codemagic', 'runs it after a push'],
  ['bitrise.yml', 'Bitrise', 'runs it after a push'],
  // Package managers.
  ['.npmrc', 'npm, pnpm', 'use the shell, the git and the registry it names'],
  ['.pnpmfile.cjs', 'pnpm', 'loads it at each install'],
  ['.pnpmfile.mjs', 'pnpm', 'loads it at each install'],
  ['pnpm-workspace.yaml', 'pnpm', 'uses the shell its scriptShell names, runs the build scripts it allows'],
  ['bunfig.toml', 'bun', 'loads the files of its preload'],
  ['.yarnrc', 'yarn', 'runs the file of its yarn-path in place of itself'],
  ['.yarnrc.yml', 'yarn', 'runs the file of its yarnPath in place of itself, loads its plugins'],
  ['.yarn/plugins', 'yarn', 'loads it at each start'],
  ['.yarn/releases', 'yarn', 'is run from it'],
  ['.cargo/config.toml', 'cargo', 'runs the wrappers, linkers and runners it names'],
  ['.cargo/config', 'cargo', 'reads it as config.toml'],
  ['.bundle/config', 'bundler', 'loads gems from where it says'],
  ['rust-toolchain', 'cargo', 'is run from the path it names'],
  ['rust-toolchain.toml', 'cargo', 'is run from the path it names'],
  ['.mvn', 'Maven', 'loads its extensions, takes its options'],
  ['.sbtopts', 'sbt', 'takes its options'],
  ['.jvmopts', 'sbt', 'takes its options'],
  ['.bazeliskrc', 'Bazelisk', 'runs the program from where it says'],
  ['tools/bazel', 'Bazelisk', 'runs it in place of bazel'],
  ['.swiftpm/configuration', 'Swift', 'installs from the registries it names'],
  ['.luarocks', 'LuaRocks', 'loads its configuration, which is a program'],
  ['ansible.cfg', 'Ansible', 'loads plugins from where it says'],
  ...['nuget.config', 'NuGet.config', 'NuGet.Config'].map(
    (name): Row => [name, 'NuGet', 'installs from the sources it names'],
  ),
  // Debuggers and search.
  ['.gdbinit', 'gdb', 'runs it in this directory where auto-load allows it'],
  ['.lldbinit', 'lldb', 'runs it in this directory where load-cwd-lldbinit is set'],
  ['.pdbrc', 'pdb', 'runs it in this directory'],
  ['.perldb', 'perl', 'runs it in this directory under -d'],
  ['.rdbgrc', 'rdbg', 'runs it in this directory'],
  ['.byebugrc', 'byebug', 'runs it in this directory'],
  // Interpreters, when they start without a script.
  ['.irbrc', 'irb', 'runs it in this directory'],
  ['_irbrc', 'irb', 'reads it as .irbrc'],
  ['irb.rc', 'irb', 'reads it as .irbrc'],
  ['.config/irb', 'irb', 'runs its irbrc at each start'],
  ['.pryrc', 'pry', 'runs it in this directory'],
  ['.Rprofile', 'R', 'runs it in this directory'],
  ['.Renviron', 'R', 'sets variables from it'],
  ['.RData', 'R', 'restores it, functions included'],
  ['.ghci', 'ghci', 'runs its commands in this directory'],
  ['.iex.exs', 'iex', 'runs it in this directory'],
  ['.ocamlinit', 'ocaml', 'runs it in this directory'],
  ['.octaverc', 'octave', 'runs it in this directory'],
  ['.ripgreprc', 'ripgrep', 'runs the programs of --pre where RIPGREP_CONFIG_PATH names it'],
]

const IN_HOMES: readonly Row[] = [
  // Shells and logins.
  ['.bashrc', 'bash', 'runs it in each interactive shell'],
  ['.bashrc.d', 'bash', 'runs all files of it from the .bashrc of Fedora'],
  ['.bash_profile', 'bash', 'runs it at login'],
  ['.bash_login', 'bash', 'runs it at login'],
  ['.bash_logout', 'bash', 'runs it at logout'],
  ['.bash_aliases', 'bash', 'runs it from the .bashrc of Debian'],
  ['.bash_completion', 'bash', 'runs it in each interactive shell with completion'],
  ['.local/share/bash-completion', 'bash', 'loads its completions in interactive shells'],
  ['.config/bash', 'bash', 'runs its files from .bashrc'],
  ['.config/shell', 'shells', 'run its files from their start-up files'],
  ['.inputrc', 'bash', 'binds keys to what it says'],
  ['.profile', 'login shells', 'run it at login'],
  ['.zshrc', 'zsh', 'runs it in each interactive shell'],
  ['.zprofile', 'zsh', 'runs it at login'],
  ['.zshenv', 'zsh', 'runs it at each start'],
  ['.zlogin', 'zsh', 'runs it at login'],
  ['.zlogout', 'zsh', 'runs it at logout'],
  ['.oh-my-zsh', 'zsh', 'runs it from .zshrc'],
  ['.p10k.zsh', 'zsh', 'runs it from .zshrc'],
  ['.zprezto', 'zsh', 'runs it from .zshrc'],
  ['.zpreztorc', 'zsh', 'runs it from .zshrc'],
  ['.zinit', 'zsh', 'runs it from .zshrc'],
  ['.local/share/zinit', 'zsh', 'runs it from .zshrc'],
  ['.antigen', 'zsh', 'runs it from .zshrc'],
  ['.antidote', 'zsh', 'runs it from .zshrc'],
  ['.zplug', 'zsh', 'runs it from .zshrc'],
  ['.zim', 'zsh', 'runs it from .zshrc'],
  ['.zimrc', 'zsh', 'installs what it names'],
  ['.config/zsh', 'zsh', 'runs its files where ZDOTDIR names it'],
  ['.zfunc', 'zsh', 'loads its functions'],
  ['.oh-my-bash', 'bash', 'runs it from .bashrc'],
  ['.bash_it', 'bash', 'runs it from .bashrc'],
  ['.bash-preexec.sh', 'bash', 'runs it from .bashrc'],
  ['.fzf', 'shells', 'run it from their start-up files'],
  ['.fzf.bash', 'bash', 'runs it from .bashrc'],
  ['.fzf.zsh', 'zsh', 'runs it from .zshrc'],
  ['.kshrc', 'ksh', 'runs it in each interactive shell'],
  ['.cshrc', 'csh', 'runs it at each start'],
  ['.tcshrc', 'tcsh', 'runs it at each start'],
  ['.login', 'csh', 'runs it at login'],
  ['.logout', 'csh', 'runs it at logout'],
  ['.config/fish', 'fish', 'runs its config.fish, conf.d and functions'],
  ['.config/nushell', 'nushell', 'runs its config.nu and env.nu'],
  ['.config/powershell', 'PowerShell', 'runs its profile at each start'],
  ['.config/direnv', 'direnv', 'runs its direnvrc and library'],
  ['.direnvrc', 'direnv', 'runs it with each .envrc'],
  ['.config/starship.toml', 'starship', 'runs its custom commands at each prompt'],
  ['.tmux.conf', 'tmux', 'runs its commands at the start'],
  ['.config/tmux', 'tmux', 'runs the commands of its tmux.conf'],
  ['.tmux', 'tmux', 'runs its plugins'],
  ['.config/zellij', 'Zellij', 'starts the programs its layouts name'],
  ['.config/kitty', 'kitty', 'runs its kittens and sessions'],
  ['.config/alacritty', 'Alacritty', 'starts the shell it names'],
  ['.config/wezterm', 'WezTerm', 'runs its configuration, which is a program'],
  ['.wezterm.lua', 'WezTerm', 'runs it at each start'],
  ['.config/ghostty', 'Ghostty', 'starts the program it names'],
  ['.config/foot', 'foot', 'starts the shell it names'],
  ['.screenrc', 'screen', 'runs its commands at the start'],
  ['.pam_environment', 'pam_env', 'sets variables of each login'],
  ['.xprofile', 'display managers', 'run it at login'],
  ['.xinitrc', 'startx', 'runs it'],
  ['.xsession', 'display managers', 'run it at login'],
  ['.xsessionrc', 'display managers', 'run it at login'],
  ['.config/autostart', 'desktops', 'start its programs at login'],
  ['.config/systemd', 'systemd', 'starts its units at login'],
  ['.config/environment.d', 'systemd', 'sets variables of each login'],
  ['.local/share/systemd', 'systemd', 'starts its units at login'],
  ['.local/share/dbus-1', 'D-Bus', 'starts its services on request'],
  ['.local/share/applications', 'desktops', 'start its programs to open files'],
  ['.config/mimeapps.list', 'desktops', 'choose the programs that open files'],
  ['.config/i3', 'i3', 'starts its programs at login'],
  ['.config/sway', 'sway', 'starts its programs at login'],
  ['.config/awesome', 'awesome', 'runs its rc.lua at login'],
  ['.config/bspwm', 'bspwm', 'runs its bspwmrc at login'],
  ['.config/openbox', 'Openbox', 'runs its autostart at login'],
  ['.config/qtile', 'Qtile', 'runs its config.py at login'],
  ['.config/niri', 'niri', 'starts its programs at login'],
  ['.config/river', 'river', 'runs its init at login'],
  ['.xmonad', 'xmonad', 'compiles and runs its xmonad.hs'],
  ['.config/xmonad', 'xmonad', 'compiles and runs its xmonad.hs'],
  ['.config/plasma-workspace', 'KDE Plasma', 'runs its scripts at login'],
  ['.config/waybar', 'Waybar', 'runs the commands of its modules'],
  ['.config/polybar', 'Polybar', 'runs the commands of its modules'],
  ['.local/share/gnome-shell', 'GNOME', 'loads its extensions'],
  ['.local/share/plasma', 'KDE Plasma', 'loads its widgets'],
  ['.local/share/nautilus', 'GNOME Files', 'runs its scripts on request'],
  ['.mailcap', 'mail readers', 'run the programs it names'],
  ['.lessfilter', 'less', 'runs it for each file where lesspipe is used'],
  ['.config/hypr', 'Hyprland', 'starts its programs at login'],
  ['.local/bin', 'shells', 'find programs in it first'],
  ['bin', 'login shells', 'find programs in it first'],
  ['.forward', 'mail servers', 'run the programs it names'],
  ['.procmailrc', 'procmail', 'runs its recipes with each mail'],
  // Keys, and what is trusted by them.
  ['.ssh', 'ssh, sshd', 'let in the keys of authorized_keys, run what config and rc say'],
  ['.gnupg', 'gpg', 'runs the programs its configuration names, trusts its keys'],
  ['.netrc', 'curl, git', 'send its passwords'],
  ['.curlrc', 'curl', 'obeys its options'],
  ['.wgetrc', 'wget', 'obeys its options'],
  ['.rhosts', 'rsh', 'lets in the hosts it names'],
  ['.shosts', 'sshd', 'lets in the hosts it names'],
  ['.k5login', 'Kerberos', 'lets in the principals it names'],
  ['.docker', 'docker', 'runs its plugins and credential helpers, talks to the daemon its context names'],
  ['.config/containers', 'podman', 'uses the runtimes and registries it names'],
  ['.kube', 'kubectl', 'runs the exec plugins of its config'],
  ['.aws', 'aws', 'runs the credential_process of its config'],
  ['.config/gcloud', 'gcloud', 'uses the accounts and programs it names'],
  ['.config/git', 'git', 'obeys its config and attributes, which name programs'],
  ['.git-templates', 'git', 'copies its hooks into each new repository where init.templateDir names it'],
  ['.hgrc', 'Mercurial', 'runs its hooks and loads its extensions'],
  ['.config/gh', 'GitHub CLI', 'runs its aliases'],
  ['.local/share/gh', 'GitHub CLI', 'runs its extensions'],
  // Interpreters, package managers and build tools: at each start, in every project.
  ['.pythonrc', 'python', 'runs it where PYTHONSTARTUP names it'],
  ['.ipython', 'IPython', 'runs the files of its startup directories'],
  ['.jupyter', 'Jupyter', 'runs its configuration, which is a program'],
  ['.psqlrc', 'psql', 'runs its commands at each start'],
  ['.sqliterc', 'sqlite3', 'runs its commands at each start'],
  ['.my.cnf', 'mysql', 'uses the programs and servers it names'],
  ['.mongoshrc.js', 'mongosh', 'runs it at each start'],
  ['.mongorc.js', 'mongo', 'runs it at each start'],
  ['.erlang', 'erl', 'runs it at each start'],
  ['.lein', 'Leiningen', 'loads the plugins of its profiles'],
  ['.sbt', 'sbt', 'loads its plugins'],
  ['.local/lib', 'python', 'loads usercustomize and .pth files below it at each start'],
  ['.config/pip', 'pip', 'installs from the index it names'],
  ['.pip', 'pip', 'installs from the index it names'],
  ['.config/uv', 'uv', 'installs from the index it names'],
  ['.pypirc', 'twine', 'sends packages and passwords to what it names'],
  ['.condarc', 'conda', 'installs from the channels it names'],
  ['.node_modules', 'node', 'loads modules from it'],
  ['.config/pnpm', 'pnpm', 'uses the shell and the registry its rc names'],
  ['.yarn', 'yarn', 'loads its plugins'],
  ['.bunfig.toml', 'bun', 'loads the files of its preload'],
  ['.cargo/bin', 'shells', 'find programs in it first'],
  ['.cargo/env', 'shells', 'run it at login'],
  ['.nvm', 'nvm', 'runs nvm.sh in each interactive shell'],
  ['.pyenv', 'pyenv', 'is run in each interactive shell'],
  ['.rbenv', 'rbenv', 'is run in each interactive shell'],
  ['.rvm', 'rvm', 'is run in each interactive shell'],
  ['.nodenv', 'nodenv', 'is run in each interactive shell'],
  ['.goenv', 'goenv', 'is run in each interactive shell'],
  ['.jenv', 'jenv', 'is run in each interactive shell'],
  ['.asdf', 'asdf', 'is run in each interactive shell'],
  ['.asdfrc', 'asdf', 'runs its hooks'],
  ['.sdkman', 'SDKMAN', 'is run in each interactive shell'],
  ['.volta', 'Volta', 'runs the tools in it'],
  ['.local/share/fnm', 'fnm', 'runs the tools in it'],
  ['.local/share/mise', 'mise', 'runs the tools in it'],
  ['.rustup', 'rustup', 'runs the toolchains in it'],
  ['.ghcup', 'ghcup', 'runs the tools in it'],
  ['.cabal/bin', 'shells', 'find programs in it first'],
  ['.opam', 'opam', 'is run in each interactive shell'],
  ['.juliaup', 'Julia', 'is run from it'],
  ['.julia/config', 'Julia', 'runs its startup.jl at each start'],
  ['.deno/bin', 'shells', 'find programs in it first'],
  ['.bun/bin', 'shells', 'find programs in it first'],
  ['.dotnet/tools', 'shells', 'find programs in it first'],
  ['.local/share/pnpm', 'shells', 'find programs in it first'],
  ['.krew', 'kubectl', 'runs its plugins'],
  ['go/bin', 'shells', 'find programs in it first'],
  ['.config/go', 'go', 'uses the programs its env names'],
  ['.gemrc', 'gem', 'installs from the sources it names'],
  ['.m2/settings.xml', 'Maven', 'loads artifacts from what it names'],
  ['.gradle/init.gradle', 'Gradle', 'runs it in each build'],
  ['.gradle/init.d', 'Gradle', 'runs all files of it in each build'],
  ['.gradle/gradle.properties', 'Gradle', 'passes its options to each build'],
  ['.terraformrc', 'terraform', 'loads providers from where it says'],
  ['.config/gdb', 'gdb', 'runs its gdbinit at each start'],
  // Editors and browsers.
  ['.vim', 'vim', 'runs its scripts at each start'],
  ['.config/nvim', 'neovim', 'runs its scripts at each start'],
  ['.local/share/nvim', 'neovim', 'loads its packages at each start'],
  ['.emacs', 'Emacs', 'runs it at each start'],
  ['.emacs.d', 'Emacs', 'runs its init.el at each start'],
  ['.doom.d', 'Emacs', 'runs it at each start'],
  ['.config/doom', 'Emacs', 'runs it at each start'],
  ['.spacemacs', 'Emacs', 'runs it at each start'],
  ['.spacemacs.d', 'Emacs', 'runs it at each start'],
  ['.config/emacs', 'Emacs', 'runs its init.el at each start'],
  ['.config/helix', 'Helix', 'starts the language servers it names'],
  ['.config/zed', 'Zed', 'runs its tasks, starts the language servers its settings name'],
  ['.config/Code', 'Visual Studio Code', 'uses the programs its settings name'],
  ['.config/VSCodium', 'VSCodium', 'uses the programs its settings name'],
  ['.config/Cursor', 'Cursor', 'uses the programs its settings name'],
  ['.vscode-oss', 'VSCodium', 'loads its extensions'],
  ['.cursor-server', 'Cursor', 'runs it when it connects to this machine'],
  ['.windsurf-server', 'Windsurf', 'runs it when it connects to this machine'],
  ['.config/sublime-text', 'Sublime Text', 'loads its packages'],
  ['.config/JetBrains', 'JetBrains editors', 'run its tools'],
  ['.local/share/JetBrains', 'JetBrains editors', 'load its plugins'],
  ['.vscode-server', 'Visual Studio Code', 'runs it when it connects to this machine'],
  ['.mozilla/native-messaging-hosts', 'Firefox', 'starts its programs for extensions'],
  ['.config/google-chrome/NativeMessagingHosts', 'Chrome', 'starts its programs for extensions'],
  ['.config/chromium/NativeMessagingHosts', 'Chromium', 'starts its programs for extensions'],
  ['.claude.json', 'Claude Code', 'starts its servers, trusts the projects it lists'],
  ['.config/opencode', 'OpenCode', 'loads its plugins and tools'],
  ['.config/goose', 'goose', 'starts its extensions'],
  ['.config/crush', 'Crush', 'runs its crushrc at each start'],
]

const rows = (where: ProtectedRoot, table: readonly Row[]): readonly ProtectedName[] =>
  table.map(([name, tool, why]) => ({ name, where, tool, why }))

export const PROTECTED_NAMES: readonly ProtectedName[] = [...rows('zone', IN_ZONES), ...rows('home', IN_HOMES)]

/** Opens everything that is protected by a built-in name. */
export const EVERYTHING = '*'

/** The word that opens the directories of the caller's PATH. */
export const PATH = 'PATH'

/** The word that switches the protection of git directories off. */
export const GIT = '.git'

/**
 * The entries of a git directory that git runs, follows, or takes its settings from; the rest of it (objects, refs, index, logs)
 * can be written. native/lib/repository.c knows the meaning of each name.
 */
export const GIT_NAMES = [
  'config',
  'config.worktree',
  'commondir',
  'gitdir',
  'hooks',
  'modules',
  'worktrees',
  'info/attributes',
  'objects/info/alternates',
  'objects/info/http-alternates',
] as const

/** A version control system that looks for a directory of its name at every level (native/lib/repository.h). */
export interface RepositorySystem {
  /** The directory's name, and the word that switches its protection off. */
  readonly name: string
  readonly tool: string
  /** Below the directory: what the system runs, is led by, or takes its settings from. */
  readonly closed: readonly string[]
  /** A directory that may not become a file, which would lead elsewhere. */
  readonly pinned?: string
}

export const REPOSITORY_SYSTEMS: readonly RepositorySystem[] = [
  { name: GIT, tool: 'git', closed: GIT_NAMES },
  { name: '.hg', tool: 'Mercurial', closed: ['hgrc', 'hgrc-not-shared', 'sharedpath'] },
  {
    name: '.jj',
    tool: 'Jujutsu',
    closed: ['repo/config.toml', 'workspace-config.toml', 'repo/store/git_target'],
    pinned: 'repo',
  },
]

/** The names of a place as a Markdown list by program, for docs/reference/protected.md. */
export function protectedList(where: ProtectedRoot): string {
  const names = PROTECTED_NAMES.filter((each) => each.where === where)
  const rows = [...new Set(names.map(({ tool }) => tool))].map((tool) => toolRow(names, tool))
  const shared = rows.filter(
    (row) => rows.filter(({ why }) => row.why !== undefined && why === row.why).length >= SHARED,
  )
  const items = rows.map((row) => {
    if (!shared.includes(row)) return `**${row.tool}** ${row.text}`
    const same = shared.filter(({ why }) => why === row.why)
    return same[0] === row ? `${row.why}: ${same.map(({ tool, files }) => `**${tool}** ${files}`).join('; ')}` : ''
  })
  return items
    .filter((item) => item !== '')
    .map(listItem)
    .join('\n')
}

/** So many tools with one and the same reason are one item of the list. */
const SHARED = 3

interface ToolRow {
  readonly tool: string
  readonly text: string
  /** The only reason; absent where there are more. */
  readonly why?: string
  readonly files: string
}

function toolRow(all: readonly ProtectedName[], tool: string): ToolRow {
  const names = all.filter((each) => each.tool === tool)
  const reasons = [...new Set(names.map(({ why }) => why))].map((why) => ({
    why,
    files: inBraces(names.filter((each) => each.why === why).map(({ name }) => name)).join(', '),
  }))
  const text = reasons.map(({ why, files }) => `${why}: ${files}`).join('; ')
  const [first] = reasons
  return { tool, text, files: first?.files ?? '', ...(reasons.length === 1 && first && { why: first.why }) }
}

/** Names that differ in the extension alone as one: `a.{b,c,d}`. */
function inBraces(names: readonly string[]): readonly string[] {
  const stemOf = (name: string): string => name.replace(/(?<=[^/])\.[^./]+$/, '')
  const stems = [...new Set(names.map(stemOf))]
  return stems.flatMap((stem) => {
    const same = names.filter((name) => stemOf(name) === stem)
    if (same.length < SHARED) return same.map((name) => `\`${name}\``)
    return [`\`${stem}.{${same.map((name) => name.slice(stem.length + 1)).join(',')}}\``]
  })
}

/** Every word of `protectNot`. */
export const OPENABLE_NAMES: readonly string[] = [
  ...PROTECTED_NAMES.map(({ name }) => name),
  ...REPOSITORY_SYSTEMS.map(({ name }) => name),
  ...GIT_NAMES.map((name) => `${GIT}/${name}`),
  PATH,
  EVERYTHING,
]
