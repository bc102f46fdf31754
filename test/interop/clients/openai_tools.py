import json
import os

from openai import OpenAI

client = OpenAI()
tools = [
    {
        "type": "function",
        "function": {
            "name": "shell",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
        },
    }
]
messages = [{"role": "user", "content": "Clean up."}]
while True:
    with client.chat.completions.stream(model=os.environ["MODEL"], messages=messages, tools=tools) as stream:
        message = stream.get_final_completion().choices[0].message
    if not message.tool_calls:
        print("ANSWER", message.content)
        break
    messages.append({"role": "assistant", "tool_calls": [call.model_dump() for call in message.tool_calls]})
    for call in message.tool_calls:
        print("EXECUTED", json.loads(call.function.arguments)["command"])
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "done"})
