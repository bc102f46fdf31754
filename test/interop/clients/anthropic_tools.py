import os

from anthropic import Anthropic

client = Anthropic()
tools = [
    {
        "name": "shell",
        "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
    }
]
messages = [{"role": "user", "content": "Clean up."}]
while True:
    with client.messages.stream(
        model=os.environ["MODEL"], max_tokens=100, messages=messages, tools=tools
    ) as stream:
        message = stream.get_final_message()
    calls = [block for block in message.content if block.type == "tool_use"]
    if not calls:
        print("ANSWER", message.content[-1].text)
        break
    messages.append({"role": "assistant", "content": message.content})
    results = []
    for call in calls:
        print("EXECUTED", call.input["command"])
        results.append({"type": "tool_result", "tool_use_id": call.id, "content": "done"})
    messages.append({"role": "user", "content": results})
