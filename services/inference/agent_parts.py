"""The agent's part of the composition root: from the governed model and a channel to the store, to the servicer."""

import asyncio
import random

import grpc

from services.inference.adapters.bm25_search import Bm25Search
from services.inference.adapters.counted_answers import CountedAnswers
from services.inference.adapters.store_client import StoreClient
from services.inference.domain.chat import Role
from services.inference.rpc.agent_servicer import AgentServicer
from services.inference.use_cases.answer_ports import NodeSearch
from services.inference.use_cases.answer_questions import AnswerQuestions
from services.inference.use_cases.answer_setup import AgentServices, ResponseFormat
from services.inference.use_cases.patience import Patience
from services.inference.use_cases.ports import ChatModel


def agent_servicer(
    model: ChatModel,
    store: grpc.aio.Channel,
    *,
    condense_above_chars: int,
    default_concurrency: int,
    response_format: ResponseFormat = ResponseFormat.NONE,
    patience_seconds: float = 0.0,
) -> AgentServicer:
    """AgentService over one governed model and one store; search is by embeddings where an `embed` role is set.

    Needs a running event loop, whose time it uses.
    """
    client = StoreClient(store)
    patience = Patience(patience_seconds, asyncio.get_running_loop().time, random.random)
    services = AgentServices(
        model, client, CountedAnswers(client), _search(model), condense_above_chars, response_format, patience
    )
    return AgentServicer(AnswerQuestions(services), default_concurrency)


def _search(model: ChatModel) -> NodeSearch:
    if not model.serves(Role.EMBED):
        return Bm25Search()
    from services.inference.use_cases.tools.embedding_search import EmbeddingSearch  # numpy is loaded only for this

    return EmbeddingSearch(model)
