/** Jobs of the GitHub Action on a new machine. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '../support/directory.ts'
import type { JobInputs } from '../support/github-runner.ts'
import { checkoutFor, currentUser } from '../support/users.ts'

export const CHECKOUT = checkoutFor(currentUser())

/** A job on a new machine. */
export async function newJob(inputs: JobInputs['inputs']): Promise<JobInputs> {
  const base = await temporaryDirectory({ mode: 0o755 })
  const [workspace, temp] = [join(base, 'workspace'), join(base, 'temp')]
  for (const directory of [workspace, temp]) await mkdir(directory)
  const env = { HOME: base, GITHUB_TOKEN: 'the token', ACTIONS_RUNTIME_TOKEN: 'another', SAID: 'said' }
  return { action: CHECKOUT, workspace, temp, inputs, env }
}

/** Tries to change what later steps do, by what it writes and by what it prints. */
export const HOSTILE = [
  'for file in $(printenv GITHUB_ENV GITHUB_PATH); do echo x=1 >>"$file"; done',
  'echo x=1 | tee -a "$(dirname "$GITHUB_OUTPUT")"/* >/dev/null || true',
  'printf "::add-matcher::evil.json\\n::set-output name=lib::/evil\\n"',
  'printf "##[add-path]/evil"; exit 7',
].join('\n')

/** Of Ubuntu: the setting, in a mount namespace of the step's own, and a parser that records what it is given. */
export async function withAppArmor(job: JobInputs, setting: 0 | 1): Promise<JobInputs & { readonly record: string }> {
  const [settings, bin] = [await temporaryDirectory(), await temporaryDirectory()]
  const record = join(bin, 'record')
  await writeFile(join(settings, 'apparmor_restrict_unprivileged_userns'), `${setting}\n`)
  const parser = `#!/bin/bash\nset -e\n{ echo "$1"; grep ^profile "\${@: -1}"; } >>${record}\n`
  await writeFile(join(bin, 'apparmor_parser'), parser, { mode: 0o755 })
  const show = `mount --bind ${settings} /proc/sys/kernel && exec "$@"`
  // The sandbox itself asks this machine's kernel.
  const around = (run: string) => (run.includes('/apparmor"') ? ['unshare', '--mount', 'sh', '-c', show, 'sh'] : [])
  return { ...job, record, around, env: { ...job.env, PATH: `${bin}:${process.env.PATH}` } }
}
