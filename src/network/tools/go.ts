/** go: GOPROXY of the environment, of the user's `go env -w`, or go's default. Pure. */
import { posix } from 'node:path'
import { settingsOf } from './ini.ts'
import { firstOf, type Look, type Mention, type Mentions, mention } from './look.ts'

export async function go(look: Look): Promise<Mentions> {
  const file = look.variable('GOENV') ?? posix.join(look.configHome, 'go/env')
  const settings = settingsOf(file === 'off' ? '' : (look.text(file) ?? ''), { separator: /=/, continues: false })
  const written = settings.findLast(({ key }) => key === 'GOPROXY')?.value
  const named = firstOf(proxiesIn('variable GOPROXY', look.variable('GOPROXY')), proxiesIn(file, written))
  return { own: named.length > 0 ? named : await builtIn(look), project: [] }
}

/** The words `direct` and `off` are kept as such: they say where modules come from, and name no host. */
const proxiesIn = (from: string, value = ''): readonly Mention[] =>
  mention(
    from,
    value.split(/[,|]/).map((word) => word.trim()),
  )

const builtIn = async (look: Look): Promise<readonly Mention[]> =>
  proxiesIn('go env GOPROXY', (await look.ask('go', ['env', 'GOPROXY']))?.trim())
