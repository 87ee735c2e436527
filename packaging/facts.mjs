// The facts about the project that every package names. They are in package.json; REPOSITORY and MAINTAINER of `make release` replace
// those that are not decided yet: the name of their host ends with .example, which cannot be registered.
//
//   node packaging/facts.mjs version|author|homepage     one fact, for packaging/make-deb
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** @param repository an address such as https://github.com/NAME/llm-do-exec */
const addressesOf = (repository) => ({
  repository: { type: 'git', url: `git+${repository}.git` },
  homepage: `${repository}#readme`,
  bugs: { url: `${repository}/issues` },
})

export function factsOf(manifest, { REPOSITORY = '', MAINTAINER = '' } = {}) {
  const { version, description, author, repository, homepage, bugs, license, engines } = manifest
  const addresses =
    REPOSITORY === '' ? { repository, homepage, bugs } : addressesOf(REPOSITORY.replace(/(\.git)?\/*$/, ''))
  return { version, description, author: MAINTAINER || author, ...addresses, license, engines }
}

export const facts = factsOf(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')), process.env)

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(facts[process.argv[2]])
