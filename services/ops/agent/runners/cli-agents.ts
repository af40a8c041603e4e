import { basename } from 'node:path'
import type { Limits } from './cli-reading.ts'

/** What an agent is asked. */
export interface AgentRequest extends Limits {
  prompt: string
  /** Undefined if the agent chooses. */
  model: string | undefined
  /** Where it finds the tools of its session. */
  toolsUrl: string
  /** Leads to them; it is in the variable `TOKEN_VARIABLE`. */
  token: string
}

/** A headless agent: how it is started, so that it acts by the tools of its session alone. */
export interface Agent {
  /** They may have its key, its account and its endpoint. */
  variables: readonly string[]
  args: (request: AgentRequest) => readonly string[]
  /** Variables beside the inherited ones. */
  env?: (request: AgentRequest) => Readonly<Record<string, string>>
  /** Files that it finds in its folder: their paths, each with its text. */
  files?: (request: AgentRequest) => Readonly<Record<string, string>>
}

/** The variable with the token of the session. Arguments can be seen by every user of a machine. */
export const TOKEN_VARIABLE = 'GATEHOUSE_TOOLS_TOKEN'
/** The name of our server in the settings of an agent. */
const SERVER = 'gatehouse'
/** An operation with its check may take as long; in seconds. */
const TOOL_TIMEOUT_S = 900

// `dontAsk`: the agent uses the tools that are named here, and nothing else.
const CLAUDE: Agent = {
  variables: [
    'ANTHROPIC_API_KEY',
    'ANTHROPIC_AUTH_TOKEN',
    'ANTHROPIC_BASE_URL',
    'CLAUDE_CODE_OAUTH_TOKEN',
    'CLAUDE_CONFIG_DIR',
  ],
  args({ prompt, model, toolsUrl: url, turns, budget }) {
    const headers = { Authorization: `Bearer \${${TOKEN_VARIABLE}}` }
    const server = { type: 'http', url, headers }
    return [
      '-p',
      prompt,
      '--output-format',
      'stream-json',
      '--verbose',
      ...option('--model', model),
      '--permission-mode',
      'dontAsk',
      '--tools',
      'Read,Grep,Glob',
      '--strict-mcp-config',
      '--mcp-config',
      JSON.stringify({ mcpServers: { [SERVER]: server } }),
      '--allowedTools',
      `mcp__${SERVER}`,
      '--max-turns',
      String(turns),
      ...option('--max-budget-usd', budget === Infinity ? undefined : budget.toFixed(4)),
    ]
  },
}

/** Its sandbox lets its own commands read files, and neither write nor use the network. */
const CODEX: Agent = {
  variables: ['OPENAI_API_KEY', 'CODEX_API_KEY', 'OPENAI_BASE_URL', 'CODEX_HOME'],
  args({ prompt, model, toolsUrl }) {
    const settings = {
      url: JSON.stringify(toolsUrl),
      bearer_token_env_var: JSON.stringify(TOKEN_VARIABLE),
      tool_timeout_sec: String(TOOL_TIMEOUT_S),
      // Otherwise a call would wait for a person, whom a headless agent does not have.
      default_tools_approval_mode: '"approve"',
      required: 'true',
    }
    return [
      'exec',
      '--json',
      '--skip-git-repo-check',
      '--sandbox',
      'read-only',
      ...Object.entries(settings).flatMap(([name, value]) => [
        '-c',
        `mcp_servers.${SERVER}.${name}=${value}`,
      ]),
      ...option('--model', model),
      '--',
      prompt,
    ]
  },
}

const OPENCODE: Agent = {
  variables: ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'OPENROUTER_API_KEY', 'OPENCODE_CONFIG'],
  args: ({ prompt, model }) => [
    'run',
    '--format',
    'json',
    '--agent',
    'plan',
    ...option('--model', model),
    '--',
    prompt,
  ],
  env({ toolsUrl: url }) {
    const headers = { Authorization: `Bearer {env:${TOKEN_VARIABLE}}` }
    const timeout = TOOL_TIMEOUT_S * 1_000
    const server = { type: 'remote', url, enabled: true, oauth: false, headers, timeout }
    const permission = { edit: 'deny', bash: 'deny', webfetch: 'deny' }
    return { OPENCODE_CONFIG_CONTENT: JSON.stringify({ mcp: { [SERVER]: server }, permission }) }
  },
}

/** Without a person it has no tools that write or run programs, unless its own settings say so. */
const GEMINI: Agent = {
  variables: [
    'GEMINI_API_KEY',
    'GOOGLE_API_KEY',
    'GOOGLE_GEMINI_BASE_URL',
    'GOOGLE_GENAI_USE_VERTEXAI',
    'GOOGLE_CLOUD_PROJECT',
    'GOOGLE_CLOUD_LOCATION',
  ],
  args: ({ prompt, model }) => [
    '-o',
    'stream-json',
    '--allowed-mcp-server-names',
    SERVER,
    ...option('-m', model),
    '-p',
    prompt,
  ],
  // Otherwise it does not read the settings of its folder.
  env: () => ({ GEMINI_CLI_TRUST_WORKSPACE: 'true' }),
  files({ toolsUrl: httpUrl }) {
    const headers = { Authorization: `Bearer $${TOKEN_VARIABLE}` }
    const server = { httpUrl, headers, timeout: TOOL_TIMEOUT_S * 1_000, trust: true }
    return { '.gemini/settings.json': JSON.stringify({ mcpServers: { [SERVER]: server } }) }
  },
}

const AGENTS: Readonly<Record<string, Agent>> = {
  codex: CODEX,
  opencode: OPENCODE,
  gemini: GEMINI,
}

/** The agent of a command. An unknown program takes the arguments of claude. */
export function agentOf(command: readonly string[]): Agent {
  return AGENTS[basename(command[0] ?? '')] ?? CLAUDE
}

/** The variables of all agents whose values are secrets. */
export const AGENT_SECRETS: readonly string[] = [CLAUDE, ...Object.values(AGENTS)]
  .flatMap(({ variables }) => variables)
  .filter((name) => /_(KEY|TOKEN)$/.test(name))

/** An option of a command line; nothing without a value. */
function option(name: string, value: string | undefined): readonly string[] {
  return value === undefined ? [] : [name, value]
}
