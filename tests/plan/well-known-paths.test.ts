import { describe, expect, test } from 'vitest'
import { holdsCredentials } from '../../src/plan/well-known-paths.ts'

const HOME = '/home/ann'

/** Written a second time by hand: a place that is lost from the list of src/plan/well-known-paths.ts is noticed here. */
const PATHS = `
  .ssh .aws .gnupg .config .netrc .npmrc .yarnrc .yarnrc.yml .pypirc .docker .kube .azure .gcloud .oci .git-credentials .gitconfig
  .m2 .gradle .composer .gem/credentials .cargo/credentials .cargo/credentials.toml .vault-token .terraform.d .terraformrc
  .password-store .mozilla .thunderbird .pki .local/share/keyrings .claude .codex .cache .bash_history .zsh_history .pgpass .my.cnf
  .condarc .continuum .databricks .databrickscfg .huggingface .kaggle .netlify
`
  .trim()
  .split(/\s+/)

describe('A directory holds credentials', () => {
  test.each(PATHS)('when it is ~/%s, below it or above it', (path) => {
    const inside = `${HOME}/${path}`
    expect([inside, `${inside}/x`, HOME, '/home', '/'].map((path) => holdsCredentials(path, HOME))).toEqual([
      true,
      true,
      true,
      true,
      true,
    ])
    expect(holdsCredentials(`${inside}-not`, HOME)).toBe(false)
  })

  test('when it is a whole home, wherever that is', () => {
    expect(holdsCredentials('/opt/ann', '/opt/ann')).toBe(true)
    expect(holdsCredentials('/opt/ann/tools', '/opt/ann')).toBe(false)
    expect(holdsCredentials('/opt/ann', '')).toBe(false)
  })
})
