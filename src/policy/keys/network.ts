/** The key `network`. network-layers.ts has how layers add up, network-narrowing.ts what is within what. Pure. */
import type { HeaderCredential } from '../../network/termination.ts'
import { quoteValue } from '../../text/units.ts'
import {
  readAllowedHost,
  readHeaderName,
  readHost,
  readHosts,
  readOneHost,
  readPort,
  readPublished,
  readRequest,
  readSecretFormat,
  readSecretSource,
} from '../readers.ts'
import { AFTER_SECRETS, GRANTS, type NetworkPolicy, type ProxyChoice } from '../values.ts'
import { type Field, type FlagValues, field, type Key, listField, toggleField, wordField } from './key.ts'
import {
  addNetwork,
  finishNetwork,
  joinNetwork,
  type NetworkInput,
  type NetworkWord,
  networkKeys,
  type ParsedNetwork,
  readNetworkMode,
  readNetworkWord,
  resolveNetwork,
} from './network-layers.ts'
import { narrowNetwork } from './network-narrowing.ts'

const portsField = (description: string): Field<readonly (number | string)[], readonly number[]> => ({
  ...listField(readPort, { description, unit: 'list of ports', standard: '[]' }),
})

const CREDENTIALS: Field<readonly HeaderCredential[], readonly HeaderCredential[]> = {
  description: 'Headers with a secret, added on this host to what goes to one host by TLS. Needs terminate.',
  unit: 'list of mappings',
  examples: [[{ host: 'api.example.com', header: 'Authorization', from: 'env:API_TOKEN', format: 'Bearer {}' }]],
  standard: '[]',
  shape: {
    kind: 'mappings',
    fields: {
      host: {
        ...field<string, string>(readOneHost, {
          description: 'Name or name:port; port 443 unless said.',
          unit: 'host',
          type: 'string',
        }),
        isRequired: true,
      },
      header: {
        ...field<string, string>(readHeaderName, {
          description: 'Its name, such as Authorization; what the command sends by that name is taken away.',
          unit: 'header',
          type: 'string',
        }),
        isRequired: true,
      },
      from: {
        ...field<string, string>(readSecretSource, {
          description: 'Where the secret is: env:NAME or file:PATH of this host.',
          unit: 'env:NAME or file:PATH',
          type: 'string',
        }),
        isRequired: true,
      },
      format: field<string, string>(readSecretFormat, {
        description: 'The value, with {} for the secret, such as "Bearer {}".',
        unit: 'text',
        examples: ['Bearer {}'],
        standard: '{}',
        type: 'string',
      }),
    },
  },
}

function addedHost(text: string): FlagValues {
  const at = text.indexOf('=')
  if (at < 1) return { problem: `expected NAME=ADDRESS, got ${quoteValue(text)}.` }
  return { values: { network: { hosts: { [text.slice(0, at)]: text.slice(at + 1) } } } }
}

/** The value may be the secret itself, by mistake: no message repeats it. */
function addedHeader(text: string): FlagValues {
  const [, host, header, before = '', from, after = ''] =
    /^([^/]+)\/([^=]+)=([^{}]*)\{((?:env|file):[^{}]+)\}([^{}]*)$/s.exec(text) ?? []
  if (host === undefined || header === undefined || from === undefined)
    return { problem: 'expected HOST/HEADER=TEXT with one {env:NAME} or {file:PATH} in TEXT, got something else.' }
  const format = before + after === '' ? {} : { format: `${before}{}${after}` }
  return { values: { network: { credentials: [{ host, header, from, ...format }] } } }
}

export const network: Key<NetworkInput, ParsedNetwork, NetworkPolicy> & { readonly default: NetworkInput } = {
  description: 'One of the words of mode, or a mapping.',
  unit: 'word or mapping',
  examples: ['host', { mode: 'restricted', allow: ['registry.npmjs.org'] }],
  standard: 'none',
  default: 'none',
  shape: {
    kind: 'word-or-mapping',
    read: readNetworkWord,
    join: joinNetwork,
    fields: {
      mode: field<NetworkWord | boolean, NetworkWord>(readNetworkMode, {
        description:
          'none: only a loopback inside; restricted: the hosts of allow; record: every public name, noted, to learn what allow needs; host: no wall. Naming a host means restricted.',
        unit: 'word',
        standard: 'none',
        type: ['string', 'boolean'],
        enum: ['none', 'restricted', 'record', 'host', 'no', 'off', true, false],
      }),
      allow: listField(readAllowedHost, {
        description:
          'Hosts that may be reached: host, *.host, host:port, host:*, an address or a range; ports 80 and 443 unless said. localhost:port is a port of this host. @npm, @pip, @cargo, @go, @apt, @git: the hosts that this tool is configured for.',
        unit: 'list of hosts',
        standard: '[]',
      }),
      deny: listField(readHost, {
        description: 'Hosts that may not, whatever allow says; on every port unless one is said.',
        unit: 'list of hosts',
        standard: '[]',
      }),
      local: portsField(
        "Ports of this host's own loopback that may be reached, by the name host.llm-do.internal. Naming one means restricted.",
      ),
      publish: {
        ...listField(readPublished, {
          description:
            'Servers inside that this host reaches: [IP:]PORT[:INSIDE], on its loopback unless IP says otherwise. Without another word nothing gets out.',
          unit: 'list of ports',
          standard: '[]',
        }),
      } as Field<readonly (number | string)[], readonly string[]>,
      hosts: field<Readonly<Record<string, string>>, Readonly<Record<string, string>>>(readHosts, {
        description:
          'Name -> address: where a name leads, in the place of what this host would find. Rules hold for the name and for the address.',
        unit: 'mapping',
        examples: [{ 'db.internal': '10.0.0.5' }],
        standard: '{}',
        type: 'object',
      }),
      afterSecrets: wordField(AFTER_SECRETS, {
        description: 'deny: no network at all in a sandbox that shows a zone with secret: true.',
        standard: 'allow',
      }),
      terminate: toggleField(
        'End TLS of the hosts in credentials and requests on this host, by a certificate authority that exists for the run.',
      ),
      credentials: CREDENTIALS,
      requests: listField(readRequest, {
        description:
          'All that may be asked of the hosts named here: METHOD HOST/PATH, METHOD or * for every one, with * at the end of the path for all that begins so. Needs terminate.',
        unit: 'list of requests',
        standard: '[]',
      }),
      proxy: wordField<ProxyChoice>(['auto', 'on', 'off'], {
        description:
          'HTTP and SOCKS proxies inside a restricted network, and the variables that name them: auto only where programs cannot do without.',
        standard: 'auto',
      }),
      grants: wordField(GRANTS, {
        description:
          'Whether allow can grow while the command runs: later, by llm-do allow; ask, also by a question at the terminal. Needs nftables; later and ask mean restricted.',
        standard: 'no',
      }),
    },
  },
  merging: { resolve: resolveNetwork, add: addNetwork, setsKeys: networkKeys, finish: finishNetwork },
  narrowing: narrowNetwork,
  need: ({ mode }) => `net-${mode}`,
  flags: [
    {
      name: 'net',
      argument: 'none|restricted|record|host',
      group: 'Network',
      part: 'mode',
      help: 'What the command can reach: nothing but itself, the hosts that are allowed, every public name (which is noted), or all that this host reaches.',
      standard: 'none',
    },
    {
      name: 'allow-host',
      argument: 'HOST[:PORT]',
      completes: 'refused-hosts',
      group: 'Network',
      part: 'allow',
      repeats: 'split',
      help: 'A host that may be reached (*.HOST: all below it; @npm, @pip, ...: what npm, pip... are set up for; localhost:PORT: a port of this host; ports 80 and 443 unless said); means --net restricted.',
    },
    {
      name: 'deny-host',
      isRare: true,
      argument: 'HOST[:PORT]',
      group: 'Network',
      part: 'deny',
      repeats: 'split',
      help: 'A host that may not be reached, whatever is allowed.',
    },
    {
      name: 'allow-local',
      argument: 'PORT',
      group: 'Network',
      part: 'local',
      repeats: 'split',
      help: "A port of this host's loopback that may be reached, as host.llm-do.internal; means --net restricted.",
    },
    {
      name: 'publish',
      argument: '[IP:]PORT[:INSIDE]',
      group: 'Network',
      part: 'publish',
      repeats: 'split',
      help: 'A server inside that this host reaches.',
    },
    {
      name: 'add-host',
      argument: 'NAME=ADDRESS',
      group: 'Network',
      part: 'hosts',
      repeats: true,
      isRare: true,
      help: 'Where a name leads inside, in the place of what this host would find.',
      sets: addedHost,
    },
    {
      name: 'proxy',
      argument: 'auto|on|off',
      group: 'Network',
      part: 'proxy',
      isRare: true,
      help: 'HTTP and SOCKS proxies inside a restricted network.',
      standard: 'auto',
    },
    {
      name: 'allow-later',
      isRare: true,
      group: 'Network',
      part: 'grants',
      help: 'Let llm-do allow add hosts while the command runs; means --net restricted.',
      sets: () => ({ values: { network: { grants: 'later' } } }),
    },
    {
      name: 'ask-hosts',
      group: 'Network',
      part: 'grants',
      isRare: true,
      help: 'Ask at the terminal about each other host that the command connects to; means --net restricted.',
      sets: () => ({ values: { network: { grants: 'ask' } } }),
    },
    {
      name: 'add-header',
      argument: 'HOST/HEADER=TEXT',
      group: 'Network',
      part: 'credentials',
      repeats: true,
      isRare: true,
      help: 'A header that is added on this host to what goes to HOST; in TEXT {env:NAME} or {file:PATH} is the place of the secret. Needs --terminate-tls.',
      sets: addedHeader,
    },
    {
      name: 'allow-request',
      argument: 'METHOD HOST/PATH',
      group: 'Network',
      part: 'requests',
      repeats: true,
      isRare: true,
      help: 'All that may be asked of the hosts that are named so. Needs --terminate-tls.',
    },
    {
      name: 'terminate-tls',
      isRare: true,
      group: 'Network',
      part: 'terminate',
      help: 'End TLS of hosts with credentials on this host.',
      sets: () => ({ values: { network: { terminate: true } } }),
    },
    {
      name: 'after-secrets',
      isRare: true,
      argument: 'allow|deny',
      group: 'Network',
      part: 'afterSecrets',
      help: 'Network of a run with a secret zone.',
      standard: 'allow',
    },
  ],
}
