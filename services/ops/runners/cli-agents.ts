import { basename } from 'node:path'

/** What an agent is asked. */
export interface AgentRequest {
  readonly prompt: string
  /** Undefined if the agent chooses. */
  readonly model: string | undefined
  /** Whether it may change files: tier 3, and no dry run. */
  readonly mayChange: boolean
  /** Whether it may run the commands that its own settings allow: tier 2 and up, and no dry run. */
  readonly mayRun: boolean
  readonly turns: number
  /** US dollars that are left; undefined for no limit. */
  readonly budget: number | undefined
}

/** How an agent is started, and which of our variables it gets. */
export interface AgentCommand {
  readonly argv: readonly string[]
  readonly inherit: readonly string[]
}

interface Agent {
  /** They may have its key, its account and its endpoint. */
  readonly variables: readonly string[]
  readonly args: (request: AgentRequest) => readonly string[]
}

const CLAUDE: Agent = {
  variables: [
    'ANTHROPIC_API_KEY',
    'ANTHROPIC_AUTH_TOKEN',
    'ANTHROPIC_BASE_URL',
    'CLAUDE_CODE_OAUTH_TOKEN',
    'CLAUDE_CONFIG_DIR',
  ],
  // `dontAsk`: the agent uses these tools and what the operator's own settings allow, nothing else.
  args: ({ prompt, model, mayChange, mayRun, turns, budget }) => [
    ...['-p', prompt, '--output-format', 'stream-json', '--verbose'],
    ...(model === undefined ? [] : ['--model', model]),
    ...['--permission-mode', 'dontAsk', '--strict-mcp-config', '--tools'],
    `Read,Grep,Glob${mayRun ? ',Bash' : ''}${mayChange ? ',Edit,Write' : ''}`,
    ...['--max-turns', String(turns)],
    ...(budget === undefined ? [] : ['--max-budget-usd', budget.toFixed(4)]),
  ],
}

const AGENTS: Readonly<Record<string, Agent>> = {
  codex: {
    variables: ['OPENAI_API_KEY', 'CODEX_API_KEY', 'OPENAI_BASE_URL', 'CODEX_HOME'],
    args: ({ prompt, model, mayChange }) => [
      ...['exec', '--json', '--skip-git-repo-check'],
      ...['--sandbox', mayChange ? 'workspace-write' : 'read-only'],
      ...(model === undefined ? [] : ['--model', model]),
      ...['--', prompt],
    ],
  },
  opencode: {
    variables: ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'OPENROUTER_API_KEY', 'OPENCODE_CONFIG'],
    args: ({ prompt, model, mayChange }) => [
      ...['run', '--format', 'json', '--agent', mayChange ? 'build' : 'plan'],
      ...(model === undefined ? [] : ['--model', model]),
      ...['--', prompt],
    ],
  },
  gemini: {
    variables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENAI_USE_VERTEXAI'],
    args: ({ prompt, model }) => [
      ...['-o', 'stream-json'],
      ...(model === undefined ? [] : ['-m', model]),
      ...['-p', prompt],
    ],
  },
}

/** The variables of all agents whose values are secrets. */
export const AGENT_SECRETS: readonly string[] = [CLAUDE, ...Object.values(AGENTS)]
  .flatMap(({ variables }) => variables)
  .filter((name) => /_(KEY|TOKEN)$/.test(name))

/** An unknown program takes the arguments of claude. */
export function agentCommand(command: readonly string[], request: AgentRequest): AgentCommand {
  const [program = ''] = command
  const agent = AGENTS[basename(program)] ?? CLAUDE
  return { argv: [...command, ...agent.args(request)], inherit: agent.variables }
}
