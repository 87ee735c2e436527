// The notes of a release: its section of CHANGELOG.md, how to install it, and the checksums.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { facts, root } from './facts.mjs'

/** @returns the version and the text of the newest section */
export function newestChanges(changelog) {
  const [, version = '', text = ''] = /^## (\S+)\n+([\s\S]*?)(?=\n## |$(?![\s\S]))/m.exec(changelog) ?? []
  return { version, text: text.trim() }
}

export function notes(sums) {
  const { version } = facts
  const { text } = newestChanges(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'))
  const rows = sums.map(({ name, sum }) => `| ${name} | \`${sum}\` |`)
  return `# llm-do-exec ${version}

${text}

## Install

Node 20.19 or newer is required. Use one of the three, in the directory of the files:

\`\`\`sh
sha256sum --check --ignore-missing SHA256SUMS
npm install --global ./llm-do-exec-linux-$(node -p process.arch)-${version}.tgz ./llm-do-exec-${version}.tgz
sudo apt-get install ./llm-do-exec_${version}_$(dpkg --print-architecture).deb
sudo tar -xzf llm-do-exec-${version}-linux-$(node -p process.arch).tar.gz -C /usr/local --strip-components=1
pip install ./llm_do_exec-${version}-py3-none-any.whl   # the client for Python; it needs one of the above
\`\`\`

The files can be built again with the same bytes: \`make release-files\` in a clone of this version.
\`llm-do-exec-${version}.spdx.json\` lists what they consist of.

| file | SHA-256 |
|---|---|
${rows.join('\n')}
`
}
