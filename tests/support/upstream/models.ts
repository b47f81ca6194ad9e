/** The model catalog of the stand-in upstream, which differs by plan and by client version. */
import type { Account, Plan } from './accounts.ts'

type ModelEntry = { slug: string; use_responses_lite: boolean } & Record<string, unknown>

type Model = { slug: string; name: string; lite: boolean; minimalVersion: string; plans?: Plan[]; hidden?: boolean }

const PRO_PLANS: Plan[] = ['pro', 'prolite', 'enterprise']

const MODELS: Model[] = [
  { slug: 'gpt-6-astra', name: 'GPT-6-Astra', lite: true, minimalVersion: '0.150.0', plans: PRO_PLANS },
  { slug: 'gpt-6.1-sol', name: 'GPT-6.1-Sol', lite: true, minimalVersion: '0.150.0' },
  { slug: 'gpt-6.1-terra', name: 'GPT-6.1-Terra', lite: true, minimalVersion: '0.150.0' },
  { slug: 'gpt-6-luna', name: 'GPT-6-Luna', lite: true, minimalVersion: '0.150.0' },
  { slug: 'gpt-5.5', name: 'GPT-5.5', lite: false, minimalVersion: '0.98.0' },
  { slug: 'codex-auto-review', name: 'Codex Auto Review', lite: false, minimalVersion: '0.98.0', hidden: true },
]

const EFFORTS = [
  { effort: 'low', description: 'Quick answers' },
  { effort: 'medium', description: 'For everyday work' },
  { effort: 'high', description: 'For hard problems' },
  { effort: 'xhigh', description: 'For very hard problems' },
]

/** Every slug this account can use, whatever the client version. */
export function getSlugs(account: Account): string[] {
  return account.models ?? MODELS.filter(({ plans }) => !plans || plans.includes(account.plan)).map(({ slug }) => slug)
}

/** The entries a client of this version gets for this account, best first. */
export function catalogFor(account: Account, clientVersion: string): ModelEntry[] {
  return getSlugs(account).flatMap((slug, index) => {
    const model = MODELS.find((known) => known.slug === slug) ?? customModel(slug)
    return isAtLeast(clientVersion, model.minimalVersion) ? [entry(model, index)] : []
  })
}

/** Weak entity tag of a catalog; equal catalogs have equal tags. */
export function getEtag(entries: ModelEntry[]): string {
  return `W/"${Bun.hash(JSON.stringify(entries)).toString(16)}"`
}

/** Numeric comparison of dotted versions; a suffix such as `-alpha.1` is ignored. */
function isAtLeast(version: string, minimum: string): boolean {
  const parts = (text: string) => (text.split('-')[0] ?? '').split('.').map((part) => Number(part) || 0)
  const [left, right] = [parts(version), parts(minimum)]
  for (let index = 0; index < 3; index += 1) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return true
}

function customModel(slug: string): Model {
  return { slug, name: slug, lite: false, minimalVersion: '0.0.0' }
}

/** Complete in the sense of client-protocol §7: every key that any supported client requires is there. */
function entry(model: Model, priority: number): ModelEntry {
  return {
    slug: model.slug,
    display_name: model.name,
    description: `${model.name} of the stand-in upstream.`,
    default_reasoning_level: 'medium',
    supported_reasoning_levels: EFFORTS,
    shell_type: 'unified_exec',
    visibility: model.hidden ? 'hide' : 'list',
    supported_in_api: true,
    priority,
    minimal_client_version: model.minimalVersion,
    additional_speed_tiers: ['fast'],
    service_tiers: [{ id: 'priority', name: 'Fast', description: 'Faster' }],
    default_service_tier: null,
    availability_nux: null,
    upgrade: null,
    model_messages: null,
    include_skills_usage_instructions: false,
    include_plugin_usage_instructions: false,
    include_apps_usage_instructions: false,
    supports_reasoning_summaries: true,
    supports_parallel_tool_calls: true,
    default_reasoning_summary: 'none',
    support_verbosity: true,
    default_verbosity: 'low',
    apply_patch_tool_type: 'freeform',
    web_search_tool_type: 'text_and_image',
    truncation_policy: { mode: 'tokens', limit: 10_000 },
    supports_image_detail_original: true,
    context_window: 272_000,
    max_context_window: 872_000,
    comp_hash: '3000',
    effective_context_window_percent: 95,
    experimental_supported_tools: [],
    input_modalities: ['text', 'image'],
    supports_search_tool: true,
    supports_experimental_context: false,
    use_responses_lite: model.lite,
    supports_reasoning_effort_updates: false,
    node_repl_auto_review_required: false,
    node_repl_disabled: false,
    ...(model.lite ? { tool_mode: 'code_mode_only', multi_agent_version: 'v2' } : {}),
    base_instructions: `You are ${model.name}, played by a stand-in.`,
  }
}
