// The conditions of a release, checked before anything is built. Pure.
import { newestChanges } from './notes.mjs'

/** @returns every problem in one line with a hint; none of them is left for the next try */
export function problemsOf({ status, commit, tree, tested, tag, facts, versions, changelog }) {
  const { version, repository, author } = facts
  const all = { ...versions, 'CHANGELOG.md, newest section': newestChanges(changelog).version }
  return [
    ...(status === '' ? [] : [`the tree has changes that are not committed:\n${status}\n  (hint: git stash -u)`]),
    ...(tested === tree
      ? []
      : ['make test has not passed on this commit (hint: make test, in a tree without changes)']),
    ...(tag === '' || tag === commit
      ? []
      : [`tag v${version}: expected commit ${commit}, got ${tag} (hint: a new version)`]),
    ...Object.entries(all)
      .filter(([, found]) => found !== version)
      .map(([place, found]) => `${place}: expected version ${version} of package.json, got ${found || 'none'}`),
    ...(isDecided(repository.url) ? [] : ['the address is not decided (hint: make release REPOSITORY=https://...)']),
    ...(isDecided(author) ? [] : ["the maintainer is not decided (hint: make release MAINTAINER='NAME <MAIL>')"]),
  ]
}

/** Names that end with .example are reserved, for texts: RFC 2606. */
const isDecided = (text) => !/\.example\b/.test(text)
