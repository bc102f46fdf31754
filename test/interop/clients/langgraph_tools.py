import os

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


@tool
def shell(command: str) -> str:
    """Executes a command."""
    print("EXECUTED", command)
    return "done"


agent = create_react_agent(ChatOpenAI(model=os.environ["MODEL"]), [shell])
state = agent.invoke({"messages": [("user", "Clean up.")]}, {"recursion_limit": 50})
print("ANSWER", state["messages"][-1].content)
