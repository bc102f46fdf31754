import { readFileSync } from 'node:fs';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { SideEffect, type ToolDefinitionSchema } from '@writ/contracts/writ/tool/v1/tool_pb';
import { canonicalDigest, type JsonObject } from '@writ/kernel';
import { parse } from 'yaml';

/** The path of a file of the refund desk example. */
export function exampleFile(name: string): string {
  return new URL(`../../../examples/refund-desk/${name}`, import.meta.url).pathname;
}

interface ToolYaml {
  readonly name: string;
  readonly input_schema: JsonObject;
  readonly risk: number;
  readonly side_effect: string;
}

/** The tools of the refund desk as the gateway lists them. */
export function refundTools(): MessageInitShape<typeof ToolDefinitionSchema>[] {
  const { tools } = parse(readFileSync(exampleFile('tools.yaml'), 'utf8')) as {
    readonly tools: readonly ToolYaml[];
  };
  return tools.map(({ name, input_schema: schema, risk, side_effect }) => ({
    name,
    inputSchemaJson: JSON.stringify(schema),
    risk,
    sideEffect: side_effect === 'read_only' ? SideEffect.READ_ONLY : SideEffect.IDEMPOTENT,
    definitionDigest: canonicalDigest({ name, schema }),
  }));
}
